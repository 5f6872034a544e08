"""Functions of `mini-code` that are given by examples: the form is known, its numbers have to be found.

The gold program checks them in comments before it uses them, one example per line.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from unmask.tasks.generated import between
from unmask.tasks.programs import Function, FunctionKind


def line(rng: Random, level: int) -> Function:
    p, q = _numbers(rng, level)
    return _of_n(rng, "p * n + q", f"{p}*{{}}+{q}", f"{p} * n + {q}", lambda n: p * n + q)


def shifted(rng: Random, level: int) -> Function:
    p, q = _numbers(rng, level)
    return _of_n(rng, "p * (n + q)", f"{p}*({{}}+{q})", f"{p} * (n + {q})", lambda n: p * (n + q))


def square(rng: Random, level: int) -> Function:
    p, q = _numbers(rng, level)
    return _of_n(rng, "p * n * n + q", f"{p}*{{0}}*{{0}}+{q}", f"{p} * n * n + {q}", lambda n: p * n * n + q)


def curve(rng: Random, level: int) -> Function:
    p, q = _numbers(rng, level)
    code, check = f"n * n + {p} * n + {q}", f"{{0}}*{{0}}+{p}*{{0}}+{q}"
    return _of_n(rng, "n * n + p * n + q", check, code, lambda n: n * n + p * n + q)


def plane(rng: Random, level: int) -> Function:
    (p, q), r = _numbers(rng, level), between(rng, 1, 5 + 5 * level)
    form, check, code = "p * a + q * b", f"{p}*{{}}+{q}*{{}}", f"{p} * a + {q} * b"
    if level < 4:
        return _given(_pairs(rng, 2), "a, b", form, check, code, lambda a, b: p * a + q * b)
    form, check, code = f"{form} + r", f"{check}+{r}", f"{code} + {r}"
    return _given(_pairs(rng, 3), "a, b", form, check, code, lambda a, b: p * a + q * b + r)


def _numbers(rng: Random, level: int) -> tuple[int, int]:
    return between(rng, 2, 6 + 2 * level), between(rng, 1, 10 + 10 * level)


def _pairs(rng: Random, count: int) -> list[tuple[int, ...]]:
    """Examples that determine the numbers: two not in proportion, or three not on a line."""
    while True:
        points = [(between(rng, 1, 9), between(rng, 1, 9)) for _ in range(count)]
        a, b = points[0]
        c, d = points[1]
        if count == 2 and a * d != b * c:
            return [*points]
        if count == 3 and (c - a) * (points[2][1] - b) != (d - b) * (points[2][0] - a):
            return [*points]


def _of_n(rng: Random, form: str, check: str, code: str, solve: Callable[[int], int]) -> Function:
    examples: list[tuple[int, ...]] = [(n,) for n in sorted(rng.sample(range(2, 13), 2))]
    return _given(examples, "n", form, check, code, solve)


def _given(
    examples: list[tuple[int, ...]], takes: str, form: str, check: str, code: str, solve: Callable[..., int]
) -> Function:
    """`check` is the form with its numbers filled in and its arguments left open."""
    checks = [f"# {check.format(*arguments)}={solve(*arguments)}" for arguments in examples]
    text = f"Find the numbers for which f({takes}) is {form}."
    return Function(takes, text, [*checks, f"return {code}"], solve, tuple(examples))


FINDS: tuple[FunctionKind, ...] = (line, shifted, square, curve, plane)
