"""Functions of `mini-code` that are given by examples: the form is known, its numbers have to be worked out.

The gold program checks them in comments before it uses them, one example per line.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from unmask.tasks.generated.generated import between
from unmask.tasks.generated.programs import Function, FunctionKind

Examples = list[tuple[int, ...]]


def of_n(form: str, solve: Callable[[int, int, int], int], rng: Random, level: int) -> Function:
    p, q = _numbers(rng, level)
    examples: Examples = [(n,) for n in sorted(rng.sample(range(2, 13), 2))]
    return _given(examples, "n", form, {"p": p, "q": q}, lambda n: solve(p, q, n))


def plane(rng: Random, level: int) -> Function:
    (p, q), r = _numbers(rng, level), between(rng, 1, 5 + 5 * level)
    form = "p * a + q * b"
    if level < 4:
        return _given(_pairs(rng, 2), "a, b", form, {"p": p, "q": q}, lambda a, b: p * a + q * b)
    numbers = {"p": p, "q": q, "r": r}
    return _given(_pairs(rng, 3), "a, b", f"{form} + r", numbers, lambda a, b: p * a + q * b + r)


def _numbers(rng: Random, level: int) -> tuple[int, int]:
    return between(rng, 2, 6 + 2 * level), between(rng, 1, 10 + 10 * level)


def _pairs(rng: Random, count: int) -> Examples:
    """Examples that determine the numbers: two not in proportion, or three not on a line."""
    while True:
        points = [(between(rng, 1, 9), between(rng, 1, 9)) for _ in range(count)]
        a, b = points[0]
        c, d = points[1]
        if count == 2 and a * d != b * c:
            return [*points]
        if count == 3 and (c - a) * (points[2][1] - b) != (d - b) * (points[2][0] - a):
            return [*points]


def _given(examples: Examples, takes: str, form: str, numbers: dict[str, int], solve: Callable[..., int]) -> Function:
    code, letters = _fill(form, numbers), takes.split(", ")
    checks = [
        f"# {_fill(code, dict(zip(letters, arguments, strict=True))).replace(' ', '')}={solve(*arguments)}"
        for arguments in examples
    ]
    text = f"Find the numbers for which f({takes}) is {form}."
    return Function(takes, text, [*checks, f"return {code}"], solve, tuple(examples))


def _fill(form: str, numbers: dict[str, int]) -> str:
    return "".join(str(numbers.get(letter, letter)) for letter in form)


FINDS: tuple[FunctionKind, ...] = (
    partial(of_n, "p * n + q", lambda p, q, n: p * n + q),
    partial(of_n, "p * (n + q)", lambda p, q, n: p * (n + q)),
    partial(of_n, "p * n * n + q", lambda p, q, n: p * n * n + q),
    partial(of_n, "n * n + p * n + q", lambda p, q, n: n * n + p * n + q),
    plane,
)
