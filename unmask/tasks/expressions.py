"""Arithmetic as people write it: parsed into postfix order and folded, without `eval` and without recursion."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import add, mod, mul, sub, truediv
from typing import Any, TypeVar

T = TypeVar("T")
NEGATIVE = "~"  # a minus before an operand, which is subtraction from 0; it binds less than a power
RANK = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, NEGATIVE: 3, "^": 4}
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = dict(zip("+-*/%~", (add, sub, mul, truediv, mod, sub), strict=True))


class ExpressionError(ValueError):
    """The text is not an expression, or it divides by zero."""


def parse(tokens: Iterable[str], negative: bool = False) -> list[str]:
    """Return an expression in postfix order, by the shunting-yard algorithm; a minus may come first if `negative`.

    Tokens other than signs and brackets are numbers.
    """
    done: list[str] = []
    waiting: list[str] = []
    operand = False  # whether the last token ended an operand
    for token in tokens:
        if negative and token == "-" and not operand:
            done.append("0")
            waiting.append(NEGATIVE)
        elif token not in RANK and token != ")":
            if operand:
                raise ExpressionError(f"a sign is missing before {token[:20]!r}")
            operand = token != "("
            (done if operand else waiting).append(token)
        elif not operand:
            raise ExpressionError(f"a number is missing before {token!r}")
        else:
            while waiting and waiting[-1] != "(" and (token == ")" or RANK[waiting[-1]] >= RANK[token]):
                done.append(waiting.pop())
            operand = token == ")"
            if not operand:
                waiting.append(token)
            elif not waiting:
                raise ExpressionError("a closing bracket has no opening bracket")
            else:
                waiting.pop()
    if not operand:
        raise ExpressionError("the expression is incomplete" if done or waiting else "there is no expression")
    if "(" in waiting:
        raise ExpressionError("an opening bracket has no closing bracket")
    return done + waiting[::-1]


def fold(postfix: Iterable[str], leaf: Callable[[str], T], node: Callable[[T, str, T], T]) -> T:
    """Return what `node` makes of the two sides of each sign, from the numbers upwards."""
    stack: list[T] = []
    for item in postfix:
        if item in RANK:
            right, left = stack.pop(), stack.pop()
            stack.append(node(left, item, right))
        else:
            stack.append(leaf(item))
    return stack[0]
