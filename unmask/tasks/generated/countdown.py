"""Countdown: reach the target with every number used once.

    Numbers: [87, 28, 35]
    Target: 94

    87-28=59
    59+35=94
    <answer>87-28+35</answer>

The level is the number of numbers; the published benchmark has three. An answer is an expression of whole numbers,
`+ - * /` and brackets, which is evaluated exactly and without `eval`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import ClassVar

from unmask.tasks.checkers import PASS, Check, Verdict
from unmask.tasks.expressions import OPERATIONS, RANK, ExpressionError, fold, parse
from unmask.tasks.generated.base import Generated, Sketch, between, choose, tagged
from unmask.tasks.task import Problem, question_in, task
from unmask.tasks.worked import first_wrong, place_of, statements

LONGEST = 500  # characters of an expression
MOST = 100  # largest number and target
CAP = 1000  # largest intermediate result of a worked solution
_SPACE = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(r"(0|[1-9][0-9]*|[-+*/()])[ \t\r\n]*")
_STATED = re.compile(r"Numbers: \[((?:[0-9]{1,9}, ){0,9}[0-9]{1,9})\]\s+Target: (-?[0-9]{1,9})(?![0-9])")
_EQUALS = re.compile(r"=\s*[0-9]{1,9}\s*\Z")


def evaluate(text: str) -> tuple[Fraction, list[int]]:
    """Return the exact value of an expression and its numbers in the order in which they are written."""
    postfix = parse(_tokens(text))
    return fold(postfix, Fraction, _apply), [int(item) for item in postfix if item.isdigit()]


def tidy(text: str) -> str:
    """Remove spaces and redundant brackets: `(87 - 28) + 35` becomes `87-28+35`. Any other text stays as it is."""
    try:
        return fold(parse(_tokens(text)), lambda number: (number, 3), join)[0]
    except ExpressionError:
        return text


def _apply(left: Fraction, sign: str, right: Fraction) -> Fraction:
    if sign == "/" and right == 0:
        raise ExpressionError("division by zero")
    return OPERATIONS[sign](left, right)


def join(left: tuple[str, int], sign: str, right: tuple[str, int]) -> tuple[str, int]:
    """Join two texts by a sign; each comes with the rank of its outermost sign (3 for a number)."""
    rank = RANK[sign]
    first = left[0] if left[1] >= rank else f"({left[0]})"
    loose = right[1] < rank or (right[1] == rank and sign in "-/")
    return f"{first}{sign}({right[0]})" if loose else f"{first}{sign}{right[0]}", rank


def _tokens(text: str) -> list[str]:
    if len(text) > LONGEST:
        raise ExpressionError(f"an expression must have at most {LONGEST} characters, got {len(text)}")
    at = _SPACE.match(text).end()  # type: ignore[union-attr]
    tokens: list[str] = []
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError(f"{text[at : at + 20]!r} is not arithmetic")
        tokens.append(match[1])
        at = match.end()
    return tokens


@task("countdown")
@dataclass(frozen=True)
class Countdown(Generated):
    version: ClassVar[int] = 1
    levels: ClassVar[range] = range(3, 6)

    level: int = 4  # number of numbers

    def sketch(self, rng: Random) -> Sketch:
        while True:
            numbers = [between(rng, 1, MOST) for _ in range(self.level)]
            solution = combine(rng, numbers)
            if solution is not None:
                target, text, steps = solution
                gold = "\n".join([*steps, f"<answer>{text}</answer>"])
                data = {"numbers": numbers, "target": target}
                return Sketch(form(numbers, target), ask(numbers, target), gold, data)

    def read(self, text: str) -> str | None:
        content = tagged(text)
        return tidy(_EQUALS.sub("", content)) if content else None

    def fault(self, problem: Problem, answer: str) -> str:
        return fault(answer, problem.data["numbers"], problem.data["target"])

    def visible(self, messages: Sequence[Mapping[str, str]]) -> Check | None:
        return expression_check(question_in(messages), self.read)


def expression_check(question: str, read: Callable[[str], str | None]) -> Check | None:
    """Return the check of a question that states numbers and a target as `ask` does."""
    stated = _STATED.findall(question)
    if not stated:
        return None
    numbers, target = [int(number) for number in stated[-1][0].split(",")], int(stated[-1][1])

    def check(text: str) -> Verdict:
        answer = read(text)
        note = fault(answer, numbers, target) if answer else "there is no answer"
        if not note:
            return PASS
        return first_wrong(text, list(statements(text))) or Verdict(0.0, place_of(text, answer or ""), note)

    return check


def ask(numbers: Sequence[int], target: int) -> str:
    return f"Numbers: [{', '.join(map(str, numbers))}]\nTarget: {target}"


def form(numbers: Sequence[int], target: int) -> str:
    """Return the canonical form, in which the order of the numbers does not matter."""
    return f"{' '.join(map(str, sorted(numbers)))} = {target}"


def fault(text: str, numbers: Sequence[int], target: int) -> str:
    """Return why an expression does not solve the problem, or an empty text if it does."""
    try:
        value, used = evaluate(text)
    except ExpressionError as error:
        return str(error)
    if sorted(used) != sorted(numbers):
        return "the numbers are not exactly the given ones"
    return "" if value == target else "the value is not the target"


def combine(rng: Random, numbers: Sequence[int]) -> tuple[int, str, list[str]] | None:
    """Combine all numbers at random in positive whole steps; return the value, the expression and the steps."""
    pool = [(number, (str(number), 3)) for number in numbers]
    steps: list[str] = []
    while len(pool) > 1:
        left = pool.pop(int(rng.random() * len(pool)))
        right = pool.pop(int(rng.random() * len(pool)))
        sign = choose(rng, "+-*/")
        if sign in "-/" and left[0] < right[0]:
            left, right = right, left
        value = OPERATIONS[sign](left[0], right[0])
        if not 0 < value <= CAP or value != int(value):
            return None
        steps.append(f"{left[0]}{sign}{right[0]}={int(value)}")
        pool.append((int(value), join(left[1], sign, right[1])))
    value, (text, _) = pool[0]
    return (value, text, steps) if value <= MOST else None
