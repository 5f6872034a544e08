"""Countdown: reach the target with every number used once.

    Numbers: [87, 28, 35]
    Target: 94

    87-28=59
    59+35=94
    <answer>87-28+35</answer>

The level is how many numbers there are; three is what the published benchmark has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from unmask.tasks import expression
from unmask.tasks.generated import Generated, Sketch, tagged
from unmask.tasks.task import Grade, Metric, Problem, task

MOST = 100  # the largest number and target
CAP = 1000  # no step of a worked solution goes above this
_EQUALS = re.compile(r"=\s*[0-9]{1,9}\s*\Z")


@task("countdown")
@dataclass(frozen=True)
class Countdown(Generated):
    family: ClassVar[str] = "countdown"
    levels: ClassVar[range] = range(3, 6)

    level: int = 4  # numbers given

    def sketch(self, rng: Random) -> Sketch:
        while True:
            numbers = [1 + int(rng.random() * MOST) for _ in range(self.level)]
            made = combine(rng, numbers)
            if made is not None:
                target, text, steps = made
                gold = "\n".join([*steps, f"<answer>{text}</answer>"])
                data = {"numbers": numbers, "target": target}
                return Sketch(form(numbers, target), ask(numbers, target), gold, data)

    def answer(self, text: str, metric: Metric = "ours") -> str | None:
        """The expression without spaces and idle brackets, or as it stands where it is none."""
        del metric
        read = tagged(text)
        if not read:
            return None
        read = _EQUALS.sub("", read)
        try:
            return expression.tidy(read)
        except expression.ExpressionError:
            return read

    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade:
        answer = self.answer(text, metric)
        note = "no answer" if answer is None else fault(answer, problem.data["numbers"], problem.data["target"])
        return Grade(not note, float(not note), answer, note)


def ask(numbers: Sequence[int], target: int) -> str:
    return f"Numbers: [{', '.join(map(str, numbers))}]\nTarget: {target}"


def form(numbers: Sequence[int], target: int) -> str:
    """Canonical: the order of the numbers does not make another problem."""
    return f"{' '.join(map(str, sorted(numbers)))} = {target}"


def fault(text: str, numbers: Sequence[int], target: int) -> str:
    """Why an expression does not solve the problem; nothing where it does."""
    try:
        worth, used = expression.value(text)
    except expression.ExpressionError as error:
        return str(error)
    if sorted(used) != sorted(numbers):
        return "not exactly the given numbers"
    return "" if worth == target else "another value than the target"


def combine(rng: Random, numbers: Sequence[int]) -> tuple[int, str, list[str]] | None:
    """A random way to join all numbers through positive whole steps: value, expression and steps."""
    pool = [(number, (str(number), 3)) for number in numbers]
    steps: list[str] = []
    while len(pool) > 1:
        left = pool.pop(int(rng.random() * len(pool)))
        right = pool.pop(int(rng.random() * len(pool)))
        sign = "+-*/"[int(rng.random() * 4)]
        if sign in "-/" and left[0] < right[0]:
            left, right = right, left
        worth = _step(left[0], sign, right[0])
        if worth is None:
            return None
        steps.append(f"{left[0]}{sign}{right[0]}={worth}")
        pool.append((worth, expression.join(left[1], sign, right[1])))
    worth, (text, _) = pool[0]
    return (worth, text, steps) if worth <= MOST else None


def _step(left: int, sign: str, right: int) -> int | None:
    if sign == "+":
        worth = left + right
    elif sign == "-":
        worth = left - right
    elif sign == "*":
        worth = left * right
    else:
        worth, rest = divmod(left, right)
        if rest:
            return None
    return worth if 0 < worth <= CAP else None
