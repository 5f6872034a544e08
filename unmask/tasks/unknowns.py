"""Functions of `mini-code` that are told by examples: the form is given, its numbers are to be found.

The gold program checks them in comments before it uses them, an example a line.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from unmask.tasks.programs import Draft, between


def line(rng: Random, level: int) -> Draft:
    p, q = _numbers(rng, level)
    return _of_n(rng, 2, "p * n + q", f"{p}*{{}}+{q}", f"return {p} * n + {q}", lambda n: p * n + q)


def shifted(rng: Random, level: int) -> Draft:
    p, q = _numbers(rng, level)
    return _of_n(rng, 2, "p * (n + q)", f"{p}*({{}}+{q})", f"return {p} * (n + {q})", lambda n: p * (n + q))


def square(rng: Random, level: int) -> Draft:
    p, q = _numbers(rng, level)
    return _of_n(rng, 2, "p * n * n + q", f"{p}*{{0}}*{{0}}+{q}", f"return {p} * n * n + {q}", lambda n: p * n * n + q)


def curve(rng: Random, level: int) -> Draft:
    p, q = _numbers(rng, level)
    return _of_n(
        rng,
        2,
        "n * n + p * n + q",
        f"{{0}}*{{0}}+{p}*{{0}}+{q}",
        f"return n * n + {p} * n + {q}",
        lambda n: n * n + p * n + q,
    )


def plane(rng: Random, level: int) -> Draft:
    (p, q), r = _numbers(rng, level), between(rng, 1, 5 + 5 * level)
    if level < 4:
        says, worked, code = "p * a + q * b", f"{p}*{{}}+{q}*{{}}", f"return {p} * a + {q} * b"
        return _told(_pairs(rng, 2), "a, b", says, worked, code, lambda a, b: p * a + q * b)
    says, worked, code = "p * a + q * b + r", f"{p}*{{}}+{q}*{{}}+{r}", f"return {p} * a + {q} * b + {r}"
    return _told(_pairs(rng, 3), "a, b", says, worked, code, lambda a, b: p * a + q * b + r)


def _numbers(rng: Random, level: int) -> tuple[int, int]:
    return between(rng, 2, 6 + 2 * level), between(rng, 1, 10 + 10 * level)


def _pairs(rng: Random, count: int) -> list[tuple[int, ...]]:
    """Examples that leave one set of numbers: two not in proportion, three not on a line."""
    while True:
        points = [(between(rng, 1, 9), between(rng, 1, 9)) for _ in range(count)]
        a, b = points[0]
        c, d = points[1]
        if count == 2 and a * d != b * c:
            return [*points]
        if count == 3 and (c - a) * (points[2][1] - b) != (d - b) * (points[2][0] - a):
            return [*points]


def _of_n(rng: Random, count: int, says: str, worked: str, code: str, means: Callable[[int], int]) -> Draft:
    shown: list[tuple[int, ...]] = [(n,) for n in sorted(rng.sample(range(2, 13), count))]
    return _told(shown, "n", says, worked, code, means)


def _told(
    shown: list[tuple[int, ...]], takes: str, says: str, worked: str, code: str, means: Callable[..., int]
) -> Draft:
    """`worked` is the form with the arguments left open."""
    checks = [f"# {worked.format(*arguments)}={means(*arguments)}" for arguments in shown]
    return Draft(takes, f"Find the numbers for which f({takes}) is {says}.", [*checks, code], means, tuple(shown))


FINDS: tuple[Callable[[Random, int], Draft], ...] = (line, shifted, square, curve, plane)
