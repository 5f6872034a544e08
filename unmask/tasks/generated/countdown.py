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

from unmask.tasks.generated import expression
from unmask.tasks.generated.generated import Generated, Sketch, between, choose, tagged
from unmask.tasks.task import Problem, task

MOST = 100  # the largest number and target
CAP = 1000  # the largest intermediate result of a worked solution
_EQUALS = re.compile(r"=\s*[0-9]{1,9}\s*\Z")


@task("countdown")
@dataclass(frozen=True)
class Countdown(Generated):
    version: ClassVar[int] = 1
    levels: ClassVar[range] = range(3, 6)

    level: int = 4  # numbers given

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
        return expression.tidy(_EQUALS.sub("", content)) if content else None

    def fault(self, problem: Problem, answer: str) -> str:
        return fault(answer, problem.data["numbers"], problem.data["target"])


def ask(numbers: Sequence[int], target: int) -> str:
    return f"Numbers: [{', '.join(map(str, numbers))}]\nTarget: {target}"


def form(numbers: Sequence[int], target: int) -> str:
    """Canonical: the order of the numbers does not matter."""
    return f"{' '.join(map(str, sorted(numbers)))} = {target}"


def fault(text: str, numbers: Sequence[int], target: int) -> str:
    """Why an expression does not solve the problem; empty if it does."""
    try:
        value, used = expression.value(text)
    except expression.ExpressionError as error:
        return str(error)
    if sorted(used) != sorted(numbers):
        return "not exactly the given numbers"
    return "" if value == target else "another value than the target"


def combine(rng: Random, numbers: Sequence[int]) -> tuple[int, str, list[str]] | None:
    """A random way to combine all numbers in positive whole steps: value, expression and steps."""
    pool = [(number, (str(number), 3)) for number in numbers]
    steps: list[str] = []
    while len(pool) > 1:
        left = pool.pop(int(rng.random() * len(pool)))
        right = pool.pop(int(rng.random() * len(pool)))
        sign = choose(rng, "+-*/")
        if sign in "-/" and left[0] < right[0]:
            left, right = right, left
        value = expression.OPERATIONS[sign](left[0], right[0])
        if not 0 < value <= CAP or value != int(value):
            return None
        steps.append(f"{left[0]}{sign}{right[0]}={int(value)}")
        pool.append((int(value), expression.join(left[1], sign, right[1])))
    value, (text, _) = pool[0]
    return (value, text, steps) if value <= MOST else None
