"""The functions `mini-code` asks for: a description in English, the code, and a reference beside it.

Each kind puts small pieces together (conditions, terms, edits) with random constants, which makes millions of
different functions.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

LETTERS = "abcdefgh"


class Draft(NamedTuple):
    takes: str  # the argument: `xs` a list of numbers, `s` a string, `n` a number from 0, `a, b` two numbers
    says: str
    body: list[str]
    means: Callable[..., Any]
    shown: tuple[tuple[int, ...], ...] = ()  # the arguments of its examples, where they tell what is asked for


class Piece(NamedTuple):
    says: str
    code: str
    means: Callable[[Any], Any]


def between(rng: Random, low: int, high: int) -> int:
    return low + int(rng.random() * (high - low + 1))


def condition(rng: Random, x: str = "x", low: int = -9, high: int = 25) -> Piece:
    return divides(rng, x) if rng.random() < 0.4 else compares(rng, x, low, high)


def divides(rng: Random, x: str = "x") -> Piece:
    m = between(rng, 3, 9)
    r = between(rng, 1, m - 1)
    match int(rng.random() * 4):
        case 0:
            return Piece("is even", f"{x} % 2 == 0", lambda x: x % 2 == 0)
        case 1:
            return Piece(f"is a multiple of {m}", f"{x} % {m} == 0", lambda x: x % m == 0)
        case _:
            return Piece(f"leaves {r} when divided by {m}", f"{x} % {m} == {r}", lambda x: x % m == r)


def compares(rng: Random, x: str, low: int, high: int) -> Piece:
    c = between(rng, low, high)
    match int(rng.random() * 4):
        case 0:
            return Piece(f"is above {c}", f"{x} > {c}", lambda x: x > c)
        case 1:
            return Piece(f"is below {c}", f"{x} < {c}", lambda x: x < c)
        case 2:
            return Piece(f"is at least {c}", f"{x} >= {c}", lambda x: x >= c)
        case _:
            return Piece(f"is at most {c}", f"{x} <= {c}", lambda x: x <= c)


def both(rng: Random, low: int = -9, high: int = 25) -> Piece:
    """One condition of each sort, so that neither makes the other idle."""
    one, two = divides(rng), compares(rng, "x", low, high)
    first, second = one.means, two.means
    word = "and" if rng.random() < 0.5 else "or"
    says, code = f"{one.says} {word} {two.says}", f"{one.code} {word} {two.code}"
    if word == "and":
        return Piece(says, code, lambda x: first(x) and second(x))
    return Piece(says, code, lambda x: first(x) or second(x))


def term(rng: Random, x: str = "x") -> Piece:
    a, b, c = between(rng, 2, 9), between(rng, 1, 20), between(rng, 1, 30)
    match int(rng.random() * 7):
        case 0:
            return Piece(f"{a} times {x} plus {b}", f"{x} * {a} + {b}", lambda x: x * a + b)
        case 1:
            return Piece(f"{a} times {x} minus {b}", f"{x} * {a} - {b}", lambda x: x * a - b)
        case 2:
            return Piece(f"the square of {x} plus {b}", f"{x} * {x} + {b}", lambda x: x * x + b)
        case 3:
            return Piece(f"the square of {x} minus {b}", f"{x} * {x} - {b}", lambda x: x * x - b)
        case 4:
            return Piece(f"{c} minus {x}", f"{c} - {x}", lambda x: c - x)
        case 5:
            return Piece(f"{x} plus {c}", f"{x} + {c}", lambda x: x + c)
        case _:
            return Piece(f"the distance from {x} to {c}", f"abs({x} - {c})", lambda x: abs(x - c))


def fold(rng: Random, level: int) -> Draft:
    """A list to a number, by a loop."""
    test = both(rng) if level > 2 else condition(rng)
    item = term(rng) if level > 1 else Piece("x", "x", lambda x: x)
    start = between(rng, 1, 50)
    says = f"add {item.says} for each x in xs that {test.says}."
    body = [f"t = {start}", "for x in xs:", f"    if {test.code}:", f"        t += {item.code}"]
    if level < 4:
        return Draft(
            "xs",
            f"Start with {start} and {says}",
            [*body, "return t"],
            lambda xs: start + sum(item.means(x) for x in xs if test.means(x)),
        )
    other = term(rng)
    body += ["    else:", f"        t -= {other.code}"]
    return Draft(
        "xs",
        f"Start with {start} and {says} For each other x take off {other.says}.",
        [*body, "return t"],
        lambda xs: start + sum(item.means(x) if test.means(x) else -other.means(x) for x in xs),
    )


def pick(rng: Random, level: int) -> Draft:
    """A list to a list, by a comprehension."""
    test = both(rng) if level > 2 else condition(rng)
    item = term(rng)
    line = f"[{item.code} for x in xs if {test.code}]"
    says = f"List {item.says} for each x in xs that {test.says}"
    kept = test.means

    def made(xs: list[int]) -> list[int]:
        return [item.means(x) for x in xs if kept(x)]

    if level < 2 or rng.random() < 0.3:
        return Draft("xs", f"{says}.", [f"return {line}"], made)
    if rng.random() < 0.5:
        return Draft("xs", f"{says}, in rising order.", [f"return sorted({line})"], lambda xs: sorted(made(xs)))
    n = between(rng, 1, 4)
    return Draft("xs", f"{says}, without the first {n}.", [f"return {line}[{n}:]"], lambda xs: made(xs)[n:])


def first(rng: Random, level: int) -> Draft:
    test = both(rng) if level > 2 else condition(rng)
    item, d = term(rng), between(rng, -9, 99)
    body = ["for x in xs:", f"    if {test.code}:", f"        return {item.code}", f"return {d}"]
    says = f"For the first x in xs that {test.says}, return {item.says}; where there is none, {d}."
    return Draft("xs", says, body, lambda xs: next((item.means(x) for x in xs if test.means(x)), d))


def branch(rng: Random, level: int) -> Draft:
    """Two numbers to one, by cases."""
    c, p, q, r = between(rng, 1, 30), between(rng, 2, 9), between(rng, 2, 9), between(rng, 1, 20)
    one, two = term(rng, "a"), term(rng, "b")
    if level < 2:
        says = f"If a is above b return {one.says}, else {two.says}."
        body = ["if a > b:", f"    return {one.code}", f"return {two.code}"]
        return Draft("a, b", says, body, lambda a, b: one.means(a) if a > b else two.means(b))
    says = f"If a is above b plus {c} return {one.says}. Else if b is above {r} return {two.says}."
    body = [f"if a > b + {c}:", f"    return {one.code}", f"if b > {r}:", f"    return {two.code}"]
    body.append(f"return a * {p} + b * {q}")
    return Draft(
        "a, b",
        f"{says} Else return {p} times a plus {q} times b.",
        body,
        lambda a, b: one.means(a) if a > b + c else two.means(b) if b > r else p * a + q * b,
    )


def repeat(rng: Random, level: int) -> Draft:
    """A number to a number, by a recurrence."""
    a, p, q = between(rng, 1, 30), between(rng, 2, 9), between(rng, 1, 30)
    m = between(rng, 20, 99)
    test, other = condition(rng, "t", 4, m - 4), between(rng, 1, 20)
    line = f"t = (t * {p} + {q}) % {m}"
    says = f"Start with t = {a}. Do n times: multiply t by {p}, add {q} and take the remainder by {m}"
    if level < 2:
        body = [f"t = {a}", "for i in range(n):", f"    {line}", "return t"]
    else:
        says = f"{says}; then if t {test.says}, add {other}"
        body = [f"t = {a}", "for i in range(n):", f"    {line}"]
        body += [f"    if {test.code}:", f"        t += {other}", "return t"]

    def run(n: int) -> int:
        t = a
        for _ in range(n):
            t = (t * p + q) % m
            t += other if level > 1 and test.means(t) else 0
        return t

    return Draft("n", f"{says}. Return t.", body, run)


def span(rng: Random, level: int) -> Draft:
    test = both(rng, 12, 40) if level > 2 else condition(rng, low=12, high=40)
    item = term(rng) if level > 1 else Piece("x", "x", lambda x: x)
    low = between(rng, 0, 9)
    body = [
        "t = 0",
        f"for x in range({low}, n + 1):",
        f"    if {test.code}:",
        f"        t += {item.code}",
        "return t",
    ]
    says = f"Add up {item.says} for each x from {low} to n that {test.says}."
    return Draft("n", says, body, lambda n: sum(item.means(x) for x in range(low, n + 1) if test.means(x)))


def letters(rng: Random, level: int) -> Draft:
    """A string to a number: letters have worths."""
    picked = rng.sample(LETTERS, 2 + min(level, 2))
    worth = [between(rng, 1, 30) for _ in range(3)]
    few, one = "".join(sorted(picked[1:])), picked[0]
    says = f'Start with {worth[2]}. For each letter of s add {worth[0]} if it is "{one}"'
    body = [f"t = {worth[2]}", "for c in s:", f'    if c == "{one}":', f"        t += {worth[0]}"]
    body += [f'    elif c in "{few}":', f"        t -= {worth[1]}", "return t"]
    says = f'{says} and take off {worth[1]} if it is in "{few}".'
    return Draft("s", says, body, lambda s: worth[2] + sum(worth[0] * (c == one) - worth[1] * (c in few) for c in s))


def edit(rng: Random, level: int) -> Draft:
    """A string to a string, by one edit after another."""
    return _chain(rng, "s", level + 1, _edit)


def reshape(rng: Random, level: int) -> Draft:
    """A list to a list, by one edit after another."""
    return _chain(rng, "xs", level + 1, _reshape)


def _chain(rng: Random, name: str, length: int, make: Callable[[Random], Piece]) -> Draft:
    pieces = [make(rng) for _ in range(length)]
    steps: list[Callable[[Any], Any]] = [piece.means for piece in pieces]

    def run(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    body = [f"{name} = {piece.code}" for piece in pieces[:-1]] + [f"return {pieces[-1].code}"]
    says = f"Change {name} in {length} steps: {'; '.join(piece.says for piece in pieces)}."
    return Draft(name, says, body, run)


def _edit(rng: Random) -> Piece:
    a, b = rng.sample(LETTERS, 2)
    n = between(rng, 1, 5)
    match int(rng.random() * 7):
        case 0:
            return Piece(f'replace "{a}" by "{b}"', f's.replace("{a}", "{b}")', lambda s: s.replace(a, b))
        case 1:
            return Piece(f'remove every "{a}"', f's.replace("{a}", "")', lambda s: s.replace(a, ""))
        case 2:
            return Piece("reverse it", "s[::-1]", lambda s: s[::-1])
        case 3:
            return Piece(f"drop the first {n}", f"s[{n}:]", lambda s: s[n:])
        case 4:
            return Piece(f"move the first {n} to the end", f"s[{n}:] + s[:{n}]", lambda s: s[n:] + s[:n])
        case 5:
            return Piece(f'put "{a}{b}" at the end', f's + "{a}{b}"', lambda s: s + a + b)
        case _:
            return Piece(f'put "{a}{b}" in front', f'"{a}{b}" + s', lambda s: a + b + s)


def _reshape(rng: Random) -> Piece:
    n, k = between(rng, 1, 4), between(rng, 2, 30)
    match int(rng.random() * 8):
        case 0:
            return Piece("reverse it", "xs[::-1]", lambda xs: xs[::-1])
        case 1:
            return Piece("sort it", "sorted(xs)", sorted)
        case 2:
            return Piece(f"drop the first {n}", f"xs[{n}:]", lambda xs: xs[n:])
        case 3:
            return Piece(f"move the first {n} to the end", f"xs[{n}:] + xs[:{n}]", lambda xs: xs[n:] + xs[:n])
        case 4:
            return Piece(f"put {k} at the end", f"xs + [{k}]", lambda xs: [*xs, k])
        case 5:
            return Piece(f"put {k} in front", f"[{k}] + xs", lambda xs: [k, *xs])
        case 6:
            test = condition(rng)
            code, kept = f"[x for x in xs if {test.code}]", test.means
            return Piece(f"keep each x that {test.says}", code, lambda xs: [x for x in xs if kept(x)])
        case _:
            item = term(rng)
            code, made = f"[{item.code} for x in xs]", item.means
            return Piece(f"turn each x into {item.says}", code, lambda xs: [made(x) for x in xs])


KINDS: tuple[Callable[[Random, int], Draft], ...] = (
    *(fold, pick, first, branch, repeat, span, letters, edit, reshape),
)
