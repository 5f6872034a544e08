r"""Algebra, divisors, remainders, polynomials; a higher level has larger numbers and harder forms.

    Solve 7x+12=96 for x.

    96-12=84
    84/7=12
    \boxed{12}

Each line is plain arithmetic on the question and the lines above it. Where the order of operands does not matter it is
fixed, so that no question occurs twice in a different order. Half of the exercises are worked out line by line
(`KINDS`). Half are solved by finding a number and checking it (`FINDS`): the first line already uses the number that
the last line confirms, so a wrong start shows only later, as in Countdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, isqrt
from random import Random
from typing import ClassVar, NamedTuple

from unmask.tasks.checkers import Check
from unmask.tasks.generated.base import LONGEST, Generated, Sketch, between, choose
from unmask.tasks.task import Problem, task
from unmask.tasks.worked import worked_check

_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
_FRACTION = re.compile(r"[-+]?[0-9]{1,15}(?:/[0-9]{1,15})?")
_TERM = re.compile(r"([-+])(?:([0-9]{0,15})x(?:\^([0-9]))?|([0-9]{1,15}))")
_SUM = re.compile(rf"(?:{_TERM.pattern})+")


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
        """Return the content of the last closed box; equal fractions and equal polynomials have one form."""
        boxes = _BOXED.findall(text[-LONGEST:])
        return normal(boxes[-1]) or None if boxes else None

    def fault(self, problem: Problem, answer: str) -> str:
        return "" if answer == normal(problem.data["result"]) else "a different answer"

    def visible(self, messages: Sequence[Mapping[str, str]]) -> Check:
        del messages  # only the worked lines are checked: to check an answer itself would be to solve the exercise
        return worked_check(self.read, modulo=True, concludes=False)


def normal(text: str) -> str:
    """Return the form in which answers are compared."""
    text = "".join(text.split()).removeprefix("x=")
    if _FRACTION.fullmatch(text):
        top, _, bottom = text.partition("/")
        return str(Fraction(int(top), int(bottom or 1))) if bottom.strip("0") or not bottom else text
    if 0 < len(text) <= 100 and "x" in text:
        return _polynomial(text) or text
    return text


def _polynomial(text: str) -> str | None:
    """Add like terms and order them by power; return None if the text is not a sum of terms."""
    text = text if text[0] in "+-" else f"+{text}"
    if not _SUM.fullmatch(text):
        return None
    coefficients = [0] * 10
    for sign, factor, exponent, constant in _TERM.findall(text):
        place = 9 if constant else 9 - int(exponent or 1)
        coefficients[place] += int(sign + (constant or factor or "1"))
    return poly(coefficients)


class Exercise(NamedTuple):
    question: str
    lines: list[str]
    answer: str


def signed(rng: Random, high: int) -> int:
    """Draw a number from -high to high, but not 0."""
    size = between(rng, 1, high)
    return -size if rng.random() < 0.5 else size


def poly(coefficients: Sequence[int], letter: str = "x") -> str:
    """Write the polynomial with these coefficients, highest power first: `[2, -3, 0, 5]` is `2x^3-3x^2+5`."""
    text = ""
    top = len(coefficients) - 1
    for place, c in enumerate(coefficients):
        power = top - place
        if c:
            size = "" if abs(c) == 1 and power else str(abs(c))
            sign = "-" if c < 0 else "+" if text else ""
            text += f"{sign}{size}{letter if power else ''}{f'^{power}' if power > 1 else ''}"
    return text or "0"


def times(a: int, b: int) -> str:
    return f"{a}*{b}={a * b}"


def plus(a: int, b: int) -> str:
    """Write a sum, or a subtraction if `b` is negative."""
    return f"{a}{b:+}={a + b}"


def over(a: int, b: int) -> str:
    return f"{a}/{b}={a // b}"


def linear(rng: Random, level: int) -> Exercise:
    x = signed(rng, 5 + 10 * level)
    a, b = between(rng, 2, 12), signed(rng, 20 * level)
    p = between(rng, 2, 9) if level > 2 else 1
    c = signed(rng, 9) if level > 1 else 0
    if p * a == c:
        c -= 1
    left = poly([a, b]) if p == 1 else f"{p}({poly([a, b])})"
    lines = [times(p, a), times(p, b)] if p > 1 else []
    a, b = p * a, p * b
    d = a * x + b - c * x
    lines += [plus(a, -c)] if c else []
    lines += [plus(d, -b), over(d - b, a - c)]
    return Exercise(f"Solve {left}={poly([c, d])} for x.", lines, str(x))


def system(rng: Random, level: int) -> Exercise:
    x, y = signed(rng, 8 * level), signed(rng, 8 * level)
    size = 2 * level
    while True:
        (c, d), (a, b) = sorted([(signed(rng, size), signed(rng, size)) for _ in range(2)])
        if a * d != b * c:
            break
    e, f = a * x + b * y, c * x + d * y
    det, top = a * d - b * c, e * d - b * f
    first, second = (f"{poly([p, 0])}+{poly([q, 0], 'y')}".replace("+-", "-") for p, q in ((a, b), (c, d)))
    lines = [times(a, d), times(b, c), times(e, d), times(b, f), plus(a * d, -b * c), plus(e * d, -b * f)]
    return Exercise(f"If {first}={e} and {second}={f}, find x.", [*lines, over(top, det)], str(x))


def greatest(rng: Random, level: int) -> Exercise:
    a, b = _pair(rng, level)
    return Exercise(f"Find the greatest common divisor of {a} and {b}.", euclid(a, b), str(gcd(a, b)))


def least(rng: Random, level: int) -> Exercise:
    a, b = _pair(rng, level)
    g = gcd(a, b)
    lines = [*euclid(a, b), over(a, g), times(a // g, b)]
    return Exercise(f"Find the least common multiple of {a} and {b}.", lines, str(a // g * b))


def _pair(rng: Random, level: int) -> tuple[int, int]:
    while True:
        g = between(rng, 1, 10 * level)
        b, a = sorted(g * between(rng, 2, 20 * level) for _ in range(2))
        if a != b and len(euclid(a, b)) <= 5:
            return a, b


def euclid(a: int, b: int) -> list[str]:
    lines: list[str] = []
    while b:
        lines.append(f"{a}%{b}={a % b}")
        a, b = b, a % b
    return lines


def power(rng: Random, level: int) -> Exercise:
    m, c = between(rng, 5, 10 + 15 * level), between(rng, 2, 50)
    a, n = between(rng, 2, m - 1), between(rng, 2, 3 + level)
    rest, lines = c, []
    for _ in range(n):
        lines.append(f"{rest}*{a}%{m}={rest * a % m}")
        rest = rest * a % m
    return Exercise(f"Find the remainder when {c}*{a}^{n} is divided by {m}.", lines, str(rest))


def remainder(rng: Random, level: int) -> Exercise:
    m = between(rng, 3, 9 + 5 * level)
    a, b, c = (between(rng, 2, 50 * level) for _ in range(3))
    a, b = max(a, b), min(a, b)
    r, s = a % m, b % m
    t = r * s + c
    lines = [f"{a}%{m}={r}", f"{b}%{m}={s}", times(r, s), plus(r * s, c), f"{t}%{m}={t % m}"]
    return Exercise(f"Find the remainder when {a}*{b}+{c} is divided by {m}.", lines, str(t % m))


def value(rng: Random, level: int) -> Exercise:
    """Ask for a polynomial at a point, worked out by Horner's rule."""
    coefficients = [signed(rng, 3 + 2 * level) for _ in range(2 if level < 3 else 3)] + [signed(rng, 20)]
    x = signed(rng, 4 + level)
    result, lines = horner(coefficients, x)
    return Exercise(f"Let f(x)={poly(coefficients)}. Find f({x}).", lines, str(result))


def horner(coefficients: Sequence[int], x: int) -> tuple[int, list[str]]:
    result, lines = coefficients[0], []
    for c in coefficients[1:]:
        lines += [times(result, x), plus(result * x, c)]
        result = result * x + c
    return result, lines


def expand(rng: Random, level: int) -> Exercise:
    a, c = (1 if level < 3 else between(rng, 1, level + 1)), between(rng, 1, 1 + 2 * level)
    b, d = signed(rng, 9 + 6 * level), signed(rng, 9 + 6 * level)
    (a, b), (c, d) = sorted([(a, b), (c, d)])
    lines = [times(a, d), times(b, c), plus(a * d, b * c), times(b, d)]
    if a > 1:
        lines.insert(0, times(a, c))
    answer = poly([a * c, a * d + b * c, b * d])
    return Exercise(f"Expand ({poly([a, b])})({poly([c, d])}).", lines, answer)


def root(rng: Random, level: int) -> Exercise:
    a = between(rng, 1, 3 * level)
    low, high = sorted(signed(rng, 6 + 6 * level) for _ in range(2))
    word, answer = ("larger", high) if rng.random() < 0.5 else ("smaller", low)
    b, c = -a * (low + high), a * low * high
    lines = [over(c, a), over(b, a)] if a > 1 else []
    lines += [times(low, high), plus(low, high)]
    return Exercise(f"Find the {word} root of {poly([a, b, c])}=0.", lines, str(answer))


def slope(rng: Random, level: int) -> Exercise:
    coefficients = [signed(rng, 4 + 2 * level) for _ in range(2 + level)]
    top = len(coefficients) - 1
    derivative = [c * (top - place) for place, c in enumerate(coefficients[:-1])]
    lines = [times(c, top - place) for place, c in enumerate(coefficients[:-2])]
    return Exercise(f"Find the derivative of {poly(coefficients)}.", lines, poly(derivative))


def term(rng: Random, level: int) -> Exercise:
    a, d, n = signed(rng, 30 * level), signed(rng, 6 + 3 * level), between(rng, 5, 15 + 10 * level)
    last = a + (n - 1) * d
    lines = [plus(a + d, -a), plus(n, -1), times(n - 1, d), plus(a, (n - 1) * d)]
    start = f"{a}, {a + d}, {a + 2 * d}, ..."
    return Exercise(f"Find term {n} of the arithmetic sequence {start}", lines, str(last))


def total(rng: Random, level: int) -> Exercise:
    a, d, n = between(rng, 1, 40 * level), between(rng, 2, 9 + 3 * level), 2 * between(rng, 2, 6 + 3 * level)
    last = a + (n - 1) * d
    lines = [times(n - 1, d), plus(a, (n - 1) * d), plus(a, last), times(a + last, n // 2)]
    start = f"{a}, {a + d}, {a + 2 * d}, ..."
    return Exercise(f"Add the first {n} terms of {start}", lines, str((a + last) * n // 2))


def fractions(rng: Random, level: int) -> Exercise:
    while True:
        b, d = between(rng, 2, 6 + 4 * level), between(rng, 2, 6 + 4 * level)
        a, c = between(rng, 1, b + level), between(rng, 1, d + level)
        mark, sign = ("+", 1) if rng.random() < 0.5 else ("-", -1)
        if a * d < c * b:
            a, b, c, d = c, d, a, b
        top, bottom = a * d + sign * c * b, b * d
        if top:
            break
    lines = [times(a, d), times(c, b), plus(a * d, sign * c * b), times(b, d)]
    g = gcd(top, bottom)
    if g > 1:
        lines += [over(top, g), over(bottom, g)]
    return Exercise(f"Find {a}/{b}{mark}{c}/{d} in lowest terms.", lines, str(Fraction(top, bottom)))


def percent(rng: Random, level: int) -> Exercise:
    step = (5, 2, 1, 1)[level - 1]
    p = step * between(rng, 1, 99 // step)
    n = 100 // gcd(p, 100) * between(rng, 1, 30 * level)
    part = n * p // 100
    lines = [times(n, p), over(n * p, 100)]
    exercises = [
        Exercise(f"What is {p}% of {n}?", lines, str(part)),
        Exercise(f"Increase {n} by {p}%.", [*lines, plus(n, part)], str(n + part)),
        Exercise(f"Decrease {n} by {p}%.", [*lines, plus(n, -part)], str(n - part)),
    ]
    return choose(rng, exercises)


def compose(rng: Random, level: int) -> Exercise:
    a, c = between(rng, 2, 4 + 2 * level), between(rng, 2, 4 + 2 * level)
    b, d, x = signed(rng, 10 * level), signed(rng, 10 * level), signed(rng, 4 + 3 * level)
    inner, first = horner([c, d], x)
    outer, second = horner([a, b], inner)
    question = f"Let f(x)={poly([a, b])} and g(x)={poly([c, d])}. Find f(g({x}))."
    return Exercise(question, first + second, str(outer))


def proportion(rng: Random, level: int) -> Exercise:
    a, b = between(rng, 1, 10 + 5 * level), between(rng, 2, 10 + 5 * level)
    g, h = between(rng, 1, 5 + level), between(rng, 2, 5 + level)
    x, c = a * h, b * h
    a, b = a * g, b * g
    return Exercise(f"Solve {a}/{b}=x/{c} for x.", [times(a, c), over(a * c, b)], str(x))


def base(rng: Random, level: int) -> Exercise:
    b, n = between(rng, 2, 9), between(rng, 10, 500 * level)
    while b ** (4 + level // 2) <= n:
        b += 1
    question, lines, digits = f"Write {n} in base {b}.", [], ""
    while n:
        lines.append(f"{n}={n // b}*{b}+{n % b}")
        digits, n = str(n % b) + digits, n // b
    return Exercise(question, lines, digits)


ExerciseKind = Callable[[Random, int], Exercise]
KINDS: tuple[ExerciseKind, ...] = (
    *(linear, system, greatest, least, power, remainder, value, expand, root),
    *(slope, term, total, fractions, percent, compose, proportion, base),
)


PRIMES = tuple(n for n in range(2, 90) if all(n % d for d in range(2, isqrt(n) + 1)))


def pair(rng: Random, level: int) -> Exercise:
    a, b = sorted(between(rng, 2, 8 + 8 * level) for _ in range(2))
    question = f"Two whole numbers add up to {a + b} and their product is {a * b}. Find the larger one."
    return Exercise(question, [times(a, b), plus(a, b)], str(b))


def split(rng: Random, level: int) -> Exercise:
    x, y = between(rng, 1, 6 + 6 * level), between(rng, 1, 6 + 6 * level)
    q, p = sorted(rng.sample(range(2, 7 + 3 * level), 2))
    total = p * x + q * y
    lines = [plus(x, y), times(p, x), times(q, y), plus(p * x, q * y)]
    return Exercise(f"If x+y={x + y} and {p}x+{q}y={total}, find x.", lines, str(x))


def congruence(rng: Random, level: int) -> Exercise:
    while True:
        m = between(rng, 7, 10 + 8 * level)
        a = between(rng, 2, m - 1)
        if gcd(a, m) == 1:
            break
    x, c = between(rng, 1, m - 1), between(rng, 1, m - 1)
    top = a * x + c
    question = f"Find x from 0 to {m - 1} such that {a}x+{c} leaves {top % m} when divided by {m}."
    return Exercise(question, [times(a, x), plus(a * x, c), f"{top}%{m}={top % m}"], str(x))


def squares(rng: Random, level: int) -> Exercise:
    while True:
        a, b = sorted(between(rng, 1, 6 + 5 * level) for _ in range(2))
        n = a * a + b * b
        if sum(isqrt(n - k * k) ** 2 == n - k * k for k in range(1, isqrt(n // 2) + 1)) == 1:
            break
    question = f"The squares of two whole numbers above 0 add up to {n}. Find the larger one."
    return Exercise(question, [times(a, a), times(b, b), plus(a * a, b * b)], str(b))


def preimage(rng: Random, level: int) -> Exercise:
    p, q, x = between(rng, 1, 4 + 4 * level), signed(rng, 20), between(rng, 2, 6 + 6 * level)
    high = (x + p) * x
    lines = [plus(x, p), times(x + p, x), plus(high, q)]
    return Exercise(f"Let f(x)={poly([1, p, q])}. Find x above 0 with f(x)={high + q}.", lines, str(x))


def factor(rng: Random, level: int) -> Exercise:
    primes = PRIMES[: 6 + 4 * level]
    p, q = sorted(choose(rng, primes) for _ in range(2))
    return Exercise(f"Find the smallest prime divisor of {p * q}.", [times(p, q)], str(p))


FINDS: tuple[ExerciseKind, ...] = (pair, split, congruence, squares, preimage, factor)
