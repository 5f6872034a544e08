r"""Algebra, divisors, remainders, polynomials; the level widens the numbers and brings in harder forms.

Solve 7x+12=96 for x.

96-12=84
84/7=12
\boxed{12}

Half of the exercises are worked out line by line, half are solved by finding a number and checking it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import ClassVar

from unmask.tasks.generated.base import LONGEST, Generated, Sketch, choose
from unmask.tasks.generated.exercises import FINDS, KINDS, poly
from unmask.tasks.task import Problem, task

_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
_FRACTION = re.compile(r"[-+]?[0-9]{1,15}(?:/[0-9]{1,15})?")
_TERM = re.compile(r"([-+])([0-9]{0,15})(x?)(?:\^([0-9]))?")


@task("mini-math")
@dataclass(frozen=True)
class MiniMath(Generated):
    levels: ClassVar[range] = range(1, 5)
    missing: ClassVar[str] = "no boxed answer"

    level: int = 1  # size of the numbers

    def sketch(self, rng: Random) -> Sketch:
        question, lines, answer = choose(rng, choose(rng, (KINDS, FINDS)))(rng, self.level)
        gold = "\n".join([*lines, f"\\boxed{{{answer}}}"])
        return Sketch(question, question, gold, {"result": answer})

    def read(self, text: str) -> str | None:
        """The content of the last closed box, in one form for equal fractions and equal polynomials."""
        boxes = _BOXED.findall(text[-LONGEST:])
        return normal(boxes[-1]) or None if boxes else None

    def fault(self, problem: Problem, answer: str) -> str:
        return "" if answer == normal(problem.data["result"]) else "another answer"


def normal(text: str) -> str:
    text = "".join(text.split()).removeprefix("x=")
    if _FRACTION.fullmatch(text):
        top, _, bottom = text.partition("/")
        return str(Fraction(int(top), int(bottom or 1))) if bottom.strip("0") or not bottom else text
    if 0 < len(text) <= 100 and "x" in text:
        return _polynomial(text) or text
    return text


def _polynomial(text: str) -> str | None:
    """The polynomial with like terms added, highest power first; None if the text is not a sum of terms."""
    coefficients = [0] * 10
    at, text = 0, text if text[0] in "+-" else f"+{text}"
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None or not (match[2] or match[3]) or (match[4] and not match[3]):
            return None
        power = int(match[4] or 1) if match[3] else 0
        coefficients[9 - power] += int(match[1] + (match[2] or "1"))
        at = match.end()
    return poly(coefficients)
