"""Countdown as d1 (arXiv 2504.12216) evaluates it: 256 problems of three numbers, all solvable.

    {"input": "30,100,93", "output": "23"}

`d1` reads and checks as the published evaluation does: in the last box, or else in the whole text, it reads what comes
before the first equals sign with a number, by Python's arithmetic to within 1e-5, so `**`, `//` and signs before
numbers pass.
`ours` also reads `<answer>`, and uses an exact parser that accepts only `+ - * /` and brackets.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, permutations, product
from typing import Any, ClassVar, Literal

from unmask.tasks.checkers import Check
from unmask.tasks.data import Dataset
from unmask.tasks.generated.countdown import Countdown, ask, expression_check, fault, tidy
from unmask.tasks.published.benchmark import Benchmark, Wording, boxes, clip, grade_of, tagged
from unmask.tasks.task import Grade, Metric, Problem, question_in, task

_SIGNS = {"\\div": "/", "\\times": "*", "\\cdot": "*"}
_EQUALS = re.compile(r"=[ \t]{0,9}-?[0-9][0-9.]{0,20}\s{0,9}\Z")
_BRACE = re.compile(r"[{}]")
_ALLOWED = re.compile(r"[0-9+\-*/().\s]+")
_LEFT = "0123456789+-*/() "  # characters before an equals sign, without the dot
_RESULT = tuple("0123456789. ")  # characters that may follow it
TRAIN = 1000  # number of generated problems
_BITS = 4096  # bits of the largest power that is computed; every target is far smaller


@task("countdown-d1")
@dataclass(frozen=True)
class CountdownD1(Benchmark):
    version: ClassVar[int] = 2
    source: ClassVar[Dataset] = Dataset("countdown/countdown_cd3_test.jsonl")
    wording: ClassVar[Wording] = Wording(
        "Combine the numbers into one arithmetic expression that equals the target. Use every number exactly "
        "once, with +, -, *, / and brackets. Try combinations inside <reasoning></reasoning>, then give the "
        "expression alone, without an equals sign, as \\boxed{expression} inside <answer></answer>."
    )

    split: Literal["test", "train"] = "test"  # the published problems, or generated ones like them

    def problems(self) -> list[Problem]:
        if self.split == "train":  # none of the published problems is among these
            name, drawn = "countdown-d1-train", islice(Countdown(level=3, split="train").problems(), TRAIN)
            posed = [(problem.data["numbers"], problem.data["target"]) for problem in drawn]
        else:
            name, rows = "countdown-d1", self.source.rows()
            posed = [([int(word) for word in row["input"].split(",")], int(row["output"])) for row in rows]
        problems: list[Problem] = []
        for place, (numbers, target) in enumerate(posed):
            gold = f"<answer>\\boxed{{{solve(numbers, target)}}}</answer>"
            data = {"numbers": numbers, "target": target}
            problems.append(Problem(f"{name}/{place}", ask(numbers, target), gold, data))
        return problems

    def answer(self, text: str, metric: Metric = "ours") -> str | None:
        if metric == "d1":
            return read_d1(clip(text)) or None
        answer = _read(clip(text))
        return answer and tidy(answer)

    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade:
        answer = self.answer(text, metric)
        check = fault_d1 if metric == "d1" else fault
        note = check(answer or "", problem.data["numbers"], problem.data["target"])
        return grade_of(not note, answer, note)

    def visible(self, messages: Sequence[Mapping[str, str]]) -> Check | None:
        return expression_check(question_in(messages), self.answer)


def _read(text: str) -> str | None:
    answer = next(boxes(text), "").strip() or tagged(text) or ""
    return _EQUALS.sub("", _plain(answer)).strip() or None


def read_d1(text: str) -> str:
    """Return the equation that the published evaluation reads: of `30+93-100 = 23`, the part before the equals sign."""
    equation = _plain(next(found for found in (_boxed(text), tagged(text), text) if found is not None))
    for before, after in pairwise(equation.split("=")):
        left = before[len(before.rstrip(_LEFT)) :]
        if left and after.startswith(_RESULT):
            return left.strip()
    return equation


def _boxed(text: str) -> str | None:
    """Return the content of the last box, the whole text if there is no box, or None if its braces never balance."""
    if (spaced := "\\boxed ") in text:
        return text.rpartition(spaced)[2].partition("$")[0]
    start = max(text.rfind("\\boxed"), text.rfind("\\fbox") if "\\boxed" not in text else -1)
    if start < 0:
        return text
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if brace[0] == "}" and depth == 0:
            span = text[start : brace.end()]
            return span[len("\\boxed{") : -1] if span.startswith("\\boxed{") else span
    return None


def _plain(text: str) -> str:
    for command, sign in _SIGNS.items():
        text = text.replace(command, sign)
    return text


def solve(numbers: Sequence[int], target: int) -> str:
    """Return the first expression that reaches the target, over all orders, signs and bracketings of three numbers."""
    for (a, b, c), first, second in product(permutations(numbers), "+-*/", "+-*/"):
        for text in (f"({a}{first}{b}){second}{c}", f"{a}{first}({b}{second}{c})"):
            if not fault(text, numbers, target):
                return text
    return ""


def fault_d1(text: str, numbers: Sequence[int], target: int) -> str:
    """Return why the published check refuses, or an empty text if it accepts."""
    if not _ALLOWED.fullmatch(text):
        return "characters that are not arithmetic"
    try:
        if sorted(int(number) for number in re.findall(r"[0-9]+", text)) != sorted(numbers):
            return "the numbers are not exactly the given ones"
        near = abs(_value(ast.parse(text.strip(), mode="eval").body) - target) < 1e-5
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError):
        return "no value"
    return "" if near else "the value is not the target"


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
    """Return the value that Python's `eval` would return."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _UNARY[type(node.op)](_value(node.operand))
    raise TypeError
