"""Arithmetic as Countdown writes it: whole numbers, `+ - * /`, brackets; read without `eval`, exactly."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from operator import add, mul, sub, truediv
from typing import Any, TypeVar

T = TypeVar("T")
LONGEST = 500  # characters; keeps a hostile expression cheap
_SPACE = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(r"(0|[1-9][0-9]*|[-+*/()])[ \t\r\n]*")
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {"+": add, "-": sub, "*": mul, "/": truediv}
_RANK = {"+": 1, "-": 1, "*": 2, "/": 2}


class ExpressionError(ValueError):
    """The text is not an expression, or has no value."""


def value(text: str) -> tuple[Fraction, list[int]]:
    """The exact value and the numbers used, in the order they were written."""
    postfix = parse(text)
    return _fold(postfix, Fraction, _apply), [item for item in postfix if isinstance(item, int)]


def tidy(text: str) -> str:
    """The same expression without spaces and redundant brackets: `(87 - 28) + 35` is `87-28+35`.

    A text that is not an expression stays as it is.
    """
    try:
        return _fold(parse(text), lambda number: (str(number), 3), join)[0]
    except ExpressionError:
        return text


def _fold(postfix: list[int | str], leaf: Callable[[int], T], node: Callable[[T, str, T], T]) -> T:
    stack: list[T] = []
    for item in postfix:
        if isinstance(item, int):
            stack.append(leaf(item))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(node(left, item, right))
    return stack[0]


def _apply(left: Fraction, sign: str, right: Fraction) -> Fraction:
    if sign == "/" and right == 0:
        raise ExpressionError("division by zero")
    return OPERATIONS[sign](left, right)


def join(left: tuple[str, int], sign: str, right: tuple[str, int]) -> tuple[str, int]:
    """Two texts under a sign; each comes with the rank of its outermost sign (3 for a number)."""
    rank = _RANK[sign]
    first = left[0] if left[1] >= rank else f"({left[0]})"
    loose = right[1] < rank or (right[1] == rank and sign in "-/")
    return f"{first}{sign}({right[0]})" if loose else f"{first}{sign}{right[0]}", rank


def parse(text: str) -> list[int | str]:
    """Postfix order, by the shunting-yard algorithm, which does not recurse."""
    done: list[int | str] = []
    waiting: list[str] = []
    operand = False  # whether the last token ended an operand
    for token in _tokens(text):
        if token == "(" or token.isdigit():
            if operand:
                raise ExpressionError(f"a sign is missing before {token[:20]!r}")
            if token == "(":
                waiting.append(token)
            else:
                done.append(int(token))
                operand = True
            continue
        if not operand:
            raise ExpressionError(f"a number is missing before {token!r}")
        while waiting and waiting[-1] != "(" and (token == ")" or _RANK[waiting[-1]] >= _RANK[token]):
            done.append(waiting.pop())
        if token != ")":
            waiting.append(token)
            operand = False
        elif not waiting:
            raise ExpressionError("a bracket closes that never opened")
        else:
            waiting.pop()
    if not operand:
        raise ExpressionError("the expression ends early" if done or waiting else "there is no expression")
    if "(" in waiting:
        raise ExpressionError("a bracket never closes")
    return done + waiting[::-1]


def _tokens(text: str) -> list[str]:
    if len(text) > LONGEST:
        raise ExpressionError(f"an expression has at most {LONGEST} characters, not {len(text)}")
    at = _SPACE.match(text).end()  # type: ignore[union-attr]
    tokens: list[str] = []
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError(f"{text[at : at + 20]!r} is not arithmetic")
        tokens.append(match[1])
        at = match.end()
    return tokens
