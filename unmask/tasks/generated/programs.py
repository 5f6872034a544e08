"""The functions `mini-code` asks for: a description, the code, and a reference implementation.

Each kind combines small pieces (conditions, terms, edits) with random constants. The kinds in `FINDS` are given by
examples: the form is known and its numbers must be found. Their gold programs check the numbers in comments, one
example per line, before they use them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import ge, gt, le, lt
from random import Random
from typing import Any, NamedTuple

from unmask.tasks.generated.base import between, choose

LETTERS = "abcdefgh"
COMPARISONS = (("above", ">", gt), ("below", "<", lt), ("at least", ">=", ge), ("at most", "<=", le))


class Function(NamedTuple):
    takes: str  # arguments: `xs` a list of numbers, `s` a string, `n` a number from 0, `a, b` two numbers
    text: str
    body: list[str]
    solve: Callable[..., Any]
    examples: tuple[tuple[int, ...], ...] = ()  # arguments of the examples, if these define the function


class Piece(NamedTuple):
    text: str
    code: str
    apply: Callable[[Any], Any]


ITEM = Piece("x", "x", lambda x: x)
ZERO = Piece("0", "0", lambda x: 0)


def condition(rng: Random, x: str = "x", low: int = -9, high: int = 25) -> Piece:
    return divides(rng, x) if rng.random() < 0.4 else compares(rng, x, low, high)


def divides(rng: Random, x: str = "x") -> Piece:
    m = between(rng, 3, 9)
    r = between(rng, 1, m - 1)
    leaves = Piece(f"leaves {r} when divided by {m}", f"{x} % {m} == {r}", lambda x: x % m == r)
    options = [
        Piece("is even", f"{x} % 2 == 0", lambda x: x % 2 == 0),
        Piece(f"is a multiple of {m}", f"{x} % {m} == 0", lambda x: x % m == 0),
    ]
    return choose(rng, [*options, leaves, leaves])


def compares(rng: Random, x: str, low: int, high: int) -> Piece:
    c = between(rng, low, high)
    word, sign, holds = choose(rng, COMPARISONS)
    return Piece(f"is {word} {c}", f"{x} {sign} {c}", lambda x: holds(x, c))


def both(rng: Random, low: int = -9, high: int = 25) -> Piece:
    """Join one condition of each sort, so that neither makes the other redundant."""
    left, right = divides(rng), compares(rng, "x", low, high)
    word = choose(rng, ("and", "or"))
    join = all if word == "and" else any
    text, code = f"{left.text} {word} {right.text}", f"{left.code} {word} {right.code}"
    return Piece(text, code, lambda x: join((left.apply(x), right.apply(x))))


def draw_test(rng: Random, level: int, low: int = -9, high: int = 25) -> Piece:
    return both(rng, low, high) if level > 2 else condition(rng, low=low, high=high)


def term(rng: Random, x: str = "x") -> Piece:
    a, b, c = between(rng, 2, 9), between(rng, 1, 20), between(rng, 1, 30)
    options = [
        Piece(f"{a} times {x} plus {b}", f"{x} * {a} + {b}", lambda x: x * a + b),
        Piece(f"{a} times {x} minus {b}", f"{x} * {a} - {b}", lambda x: x * a - b),
        Piece(f"the square of {x} plus {b}", f"{x} * {x} + {b}", lambda x: x * x + b),
        Piece(f"the square of {x} minus {b}", f"{x} * {x} - {b}", lambda x: x * x - b),
        Piece(f"{c} minus {x}", f"{c} - {x}", lambda x: c - x),
        Piece(f"{x} plus {c}", f"{x} + {c}", lambda x: x + c),
        Piece(f"the distance from {x} to {c}", f"abs({x} - {c})", lambda x: abs(x - c)),
    ]
    return choose(rng, options)


def fold(rng: Random, level: int) -> Function:
    """Turn a list into a number by a loop."""
    test = draw_test(rng, level)
    item = term(rng) if level > 1 else ITEM
    start = between(rng, 1, 50)
    text = f"Start with {start} and add {item.text} for each x in xs that {test.text}."
    body = [f"t = {start}", "for x in xs:", f"    if {test.code}:", f"        t += {item.code}"]
    other = term(rng) if level > 3 else ZERO
    if level > 3:
        text += f" For each other x take off {other.text}."
        body += ["    else:", f"        t -= {other.code}"]
    body.append("return t")
    return Function(
        "xs", text, body, lambda xs: start + sum(item.apply(x) if test.apply(x) else -other.apply(x) for x in xs)
    )


def pick(rng: Random, level: int) -> Function:
    """Turn a list into a list by a comprehension."""
    test = draw_test(rng, level)
    item = term(rng)
    line = f"[{item.code} for x in xs if {test.code}]"
    text = f"List {item.text} for each x in xs that {test.text}"

    def run(xs: list[int]) -> list[int]:
        return [item.apply(x) for x in xs if test.apply(x)]

    if level < 2 or rng.random() < 0.3:
        return Function("xs", f"{text}.", [f"return {line}"], run)
    if rng.random() < 0.5:
        return Function("xs", f"{text}, in rising order.", [f"return sorted({line})"], lambda xs: sorted(run(xs)))
    n = between(rng, 1, 4)
    return Function("xs", f"{text}, without the first {n}.", [f"return {line}[{n}:]"], lambda xs: run(xs)[n:])


def first(rng: Random, level: int) -> Function:
    test = draw_test(rng, level)
    item, d = term(rng), between(rng, -9, 99)
    body = ["for x in xs:", f"    if {test.code}:", f"        return {item.code}", f"return {d}"]
    text = f"For the first x in xs that {test.text}, return {item.text}; where there is none, {d}."
    return Function("xs", text, body, lambda xs: next((item.apply(x) for x in xs if test.apply(x)), d))


def branch(rng: Random, level: int) -> Function:
    """Turn two numbers into one by cases."""
    c, p, q, r = between(rng, 1, 30), between(rng, 2, 9), between(rng, 2, 9), between(rng, 1, 20)
    left, right = term(rng, "a"), term(rng, "b")
    if level < 2:
        text = f"If a is above b return {left.text}, else {right.text}."
        body = ["if a > b:", f"    return {left.code}", f"return {right.code}"]
        return Function("a, b", text, body, lambda a, b: left.apply(a) if a > b else right.apply(b))
    text = f"If a is above b plus {c} return {left.text}. Else if b is above {r} return {right.text}."
    body = [f"if a > b + {c}:", f"    return {left.code}", f"if b > {r}:", f"    return {right.code}"]
    body.append(f"return a * {p} + b * {q}")
    return Function(
        "a, b",
        f"{text} Else return {p} times a plus {q} times b.",
        body,
        lambda a, b: left.apply(a) if a > b + c else right.apply(b) if b > r else p * a + q * b,
    )


def repeat(rng: Random, level: int) -> Function:
    """Turn a number into a number by a recurrence."""
    a, p, q = between(rng, 1, 30), between(rng, 2, 9), between(rng, 1, 30)
    m = between(rng, 20, 99)
    test, other = condition(rng, "t", 4, m - 4), between(rng, 1, 20)
    text = f"Start with t = {a}. Do n times: multiply t by {p}, add {q} and take the remainder by {m}"
    body = [f"t = {a}", "for i in range(n):", f"    t = (t * {p} + {q}) % {m}"]
    if level > 1:
        text = f"{text}; then if t {test.text}, add {other}"
        body += [f"    if {test.code}:", f"        t += {other}"]

    def run(n: int) -> int:
        t = a
        for _ in range(n):
            t = (t * p + q) % m
            t += other if level > 1 and test.apply(t) else 0
        return t

    return Function("n", f"{text}. Return t.", [*body, "return t"], run)


def span(rng: Random, level: int) -> Function:
    test = draw_test(rng, level, 12, 40)
    item = term(rng) if level > 1 else ITEM
    low = between(rng, 0, 9)
    body = ["t = 0", f"for x in range({low}, n + 1):", f"    if {test.code}:", f"        t += {item.code}", "return t"]
    text = f"Add up {item.text} for each x from {low} to n that {test.text}."
    return Function("n", text, body, lambda n: sum(item.apply(x) for x in range(low, n + 1) if test.apply(x)))


def letters(rng: Random, level: int) -> Function:
    """Turn a string into a number by the values of its letters."""
    picked = rng.sample(LETTERS, 2 + min(level, 2))
    value = [between(rng, 1, 30) for _ in range(3)]
    letter, others = picked[0], "".join(sorted(picked[1:]))
    text = f'Start with {value[2]}. For each letter of s add {value[0]} if it is "{letter}"'
    body = [f"t = {value[2]}", "for c in s:", f'    if c == "{letter}":', f"        t += {value[0]}"]
    body += [f'    elif c in "{others}":', f"        t -= {value[1]}", "return t"]
    text = f'{text} and take off {value[1]} if it is in "{others}".'
    return Function(
        "s", text, body, lambda s: value[2] + sum(value[0] * (c == letter) - value[1] * (c in others) for c in s)
    )


def chain(name: str, draw: Callable[[Random], Piece], rng: Random, level: int) -> Function:
    """Change a string or a list by one edit after the other."""
    pieces = [draw(rng) for _ in range(level + 1)]

    def run(value: Any) -> Any:
        for piece in pieces:
            value = piece.apply(value)
        return value

    body = [f"{name} = {piece.code}" for piece in pieces[:-1]] + [f"return {pieces[-1].code}"]
    text = f"Change {name} in {len(pieces)} steps: {'; '.join(piece.text for piece in pieces)}."
    return Function(name, text, body, run)


def _edit(rng: Random) -> Piece:
    a, b = rng.sample(LETTERS, 2)
    n = between(rng, 1, 5)
    options = [
        Piece(f'replace "{a}" by "{b}"', f's.replace("{a}", "{b}")', lambda s: s.replace(a, b)),
        Piece(f'remove every "{a}"', f's.replace("{a}", "")', lambda s: s.replace(a, "")),
        Piece("reverse it", "s[::-1]", lambda s: s[::-1]),
        Piece(f"drop the first {n}", f"s[{n}:]", lambda s: s[n:]),
        Piece(f"move the first {n} to the end", f"s[{n}:] + s[:{n}]", lambda s: s[n:] + s[:n]),
        Piece(f'put "{a}{b}" at the end', f's + "{a}{b}"', lambda s: s + a + b),
        Piece(f'put "{a}{b}" in front', f'"{a}{b}" + s', lambda s: a + b + s),
    ]
    return choose(rng, options)


def _reshape(rng: Random) -> Piece:
    n, k = between(rng, 1, 4), between(rng, 2, 30)
    options = [
        Piece("reverse it", "xs[::-1]", lambda xs: xs[::-1]),
        Piece("sort it", "sorted(xs)", sorted),
        Piece(f"drop the first {n}", f"xs[{n}:]", lambda xs: xs[n:]),
        Piece(f"move the first {n} to the end", f"xs[{n}:] + xs[:{n}]", lambda xs: xs[n:] + xs[:n]),
        Piece(f"put {k} at the end", f"xs + [{k}]", lambda xs: [*xs, k]),
        Piece(f"put {k} in front", f"[{k}] + xs", lambda xs: [k, *xs]),
        _keep,
        _turn,
    ]
    option = choose(rng, options)
    return option if isinstance(option, Piece) else option(rng)


def _keep(rng: Random) -> Piece:
    test = condition(rng)
    code = f"[x for x in xs if {test.code}]"
    return Piece(f"keep each x that {test.text}", code, lambda xs: [x for x in xs if test.apply(x)])


def _turn(rng: Random) -> Piece:
    item = term(rng)
    code = f"[{item.code} for x in xs]"
    return Piece(f"turn each x into {item.text}", code, lambda xs: [item.apply(x) for x in xs])


FunctionKind = Callable[[Random, int], Function]
EDITS: tuple[FunctionKind, ...] = (partial(chain, "s", _edit), partial(chain, "xs", _reshape))
KINDS: tuple[FunctionKind, ...] = (fold, pick, first, branch, repeat, span, letters, *EDITS)


Examples = list[tuple[int, ...]]


def of_n(form: str, rng: Random, level: int) -> Function:
    numbers = _numbers(rng, level)
    return _given([(n,) for n in sorted(rng.sample(range(2, 13), 2))], "n", form, numbers)


def plane(rng: Random, level: int) -> Function:
    numbers = {**_numbers(rng, level), "r": between(rng, 1, 5 + 5 * level)}
    form, count = ("p * a + q * b", 2) if level < 4 else ("p * a + q * b + r", 3)
    return _given(_pairs(rng, count), "a, b", form, numbers)


def _numbers(rng: Random, level: int) -> dict[str, int]:
    return {"p": between(rng, 2, 6 + 2 * level), "q": between(rng, 1, 10 + 10 * level)}


def _pairs(rng: Random, count: int) -> Examples:
    """Draw examples that determine the numbers: points not on a line, the third of two points being the origin."""
    while True:
        points = [(between(rng, 1, 9), between(rng, 1, 9)) for _ in range(count)]
        (a, b), (c, d), (e, f) = [*points, (0, 0)][:3]
        if (c - a) * (f - b) != (d - b) * (e - a):
            return [*points]


def _given(examples: Examples, takes: str, form: str, numbers: dict[str, int]) -> Function:
    """Return a function of the form with these numbers, which its examples determine."""
    code, letters = _fill(form, numbers), takes.split(", ")
    solve = eval(f"lambda {takes}: {code}")
    checks = [
        f"# {_fill(code, dict(zip(letters, arguments, strict=True))).replace(' ', '')}={solve(*arguments)}"
        for arguments in examples
    ]
    text = f"Find the numbers for which f({takes}) is {form}."
    return Function(takes, text, [*checks, f"return {code}"], solve, tuple(examples))


def _fill(form: str, numbers: dict[str, int]) -> str:
    return "".join(str(numbers.get(letter, letter)) for letter in form)


FORMS = ("p * n + q", "p * (n + q)", "p * n * n + q", "n * n + p * n + q")
FINDS: tuple[FunctionKind, ...] = (*(partial(of_n, form) for form in FORMS), plane)
