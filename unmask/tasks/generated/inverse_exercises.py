"""Exercises of `mini-math` that are solved by finding a number and checking it.

The first line already uses the number that the last line confirms: as in Countdown, a wrong start shows only later.
"""

from __future__ import annotations

from math import gcd, isqrt
from random import Random

from unmask.tasks.generated.exercises import Exercise, ExerciseKind, plus, poly, signed, times
from unmask.tasks.generated.generated import between, choose

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
