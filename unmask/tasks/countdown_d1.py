"""Countdown as d1 (arXiv 2504.12216) evaluates it: 256 problems of three numbers, all solvable.

    {"input": "30,100,93", "output": "23"}

`d1` evaluates with Python's arithmetic, to within 1e-5, so `**`, `//` and signs before numbers pass. `ours` uses an
exact parser that accepts only `+ - * /` and brackets.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any, ClassVar

from unmask.tasks import expression
from unmask.tasks.benchmark import Benchmark, Wording, boxes, clip, grade_of, tagged
from unmask.tasks.countdown import ask, fault
from unmask.tasks.data import Dataset
from unmask.tasks.task import Grade, Metric, Problem, task

_SIGNS = {"\\div": "/", "\\times": "*", "\\cdot": "*"}
_EQUALS = re.compile(r"=[ \t]{0,9}-?[0-9][0-9.]{0,20}\s{0,9}\Z")
_ALLOWED = frozenset("0123456789+-*/(). ")
_BITS = 4096  # the widest power that is computed; no target is near a wider one


@task("countdown-d1")
@dataclass(frozen=True)
class CountdownD1(Benchmark):
    source: ClassVar[Dataset] = Dataset("countdown/countdown_cd3_test.jsonl")
    wording: ClassVar[Wording] = Wording(
        "Combine the numbers into one arithmetic expression that equals the target. Use every number exactly "
        "once, with +, -, *, / and brackets. Try combinations inside <reasoning></reasoning>, then give the "
        "expression alone, without an equals sign, as \\boxed{expression} inside <answer></answer>."
    )

    def problems(self) -> list[Problem]:
        problems: list[Problem] = []
        for place, row in enumerate(self.source.rows()):
            numbers, target = [int(word) for word in row["input"].split(",")], int(row["output"])
            gold = f"<answer>\\boxed{{{solve(numbers, target)}}}</answer>"
            data = {"numbers": numbers, "target": target}
            problems.append(Problem(f"countdown-d1/{place}", ask(numbers, target), gold, data))
        return problems

    def answer(self, text: str, metric: Metric = "ours") -> str | None:
        answer = _read(clip(text))
        return answer if answer is None or metric == "d1" else expression.tidy(answer)

    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade:
        answer = self.answer(text, metric)
        check = fault_d1 if metric == "d1" else fault
        note = check(answer or "", problem.data["numbers"], problem.data["target"])
        return grade_of(not note, answer, note)


def _read(text: str) -> str | None:
    answer = next(boxes(text), "").strip() or tagged(text)
    if not answer:
        return None
    for command, sign in _SIGNS.items():
        answer = answer.replace(command, sign)
    return _EQUALS.sub("", answer).strip() or None


def solve(numbers: Sequence[int], target: int) -> str:
    """The first expression that reaches the target, over all orders, signs and both bracketings of three numbers."""
    for (a, b, c), first, second in product(permutations(numbers), "+-*/", "+-*/"):
        for text in (f"({a}{first}{b}){second}{c}", f"{a}{first}({b}{second}{c})"):
            if not fault(text, numbers, target):
                return text
    return ""


def fault_d1(text: str, numbers: Sequence[int], target: int) -> str:
    """Why the published check refuses; empty if it accepts."""
    if len(text) > expression.LONGEST or not set(text) <= _ALLOWED:
        return "characters that are not arithmetic"
    if sorted(int(number) for number in re.findall(r"[0-9]+", text)) != sorted(numbers):
        return "not exactly the given numbers"
    try:
        near = abs(_value(ast.parse(text.strip(), mode="eval").body) - target) < 1e-5
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError):
        return "no value"
    return "" if near else "another value than the target"


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * abs(exponent) > _BITS:
        raise OverflowError
    return base**exponent


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: _power,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}


def _value(node: ast.expr) -> Any:
    """The value that Python's `eval` would return."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _UNARY[type(node.op)](_value(node.operand))
    raise TypeError
