"""Values of the small Python: what they cost, and how they are combined and compared."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from operator import add, and_, floordiv, ge, gt, le, lt, mod, mul, or_, sub
from typing import Any

BITS = 256  # the widest integer
_ORDER: dict[type, Callable[..., bool]] = {ast.Lt: lt, ast.LtE: le, ast.Gt: gt, ast.GtE: ge}
_ARITHMETIC: dict[type, Callable[[int, int], int]] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.FloorDiv: floordiv,
    ast.Mod: mod,
    ast.Pow: pow,
    ast.BitOr: or_,
    ast.BitAnd: and_,
}


_SETS: dict[type, Callable[[Any, Any], Any]] = {ast.Sub: sub, ast.BitOr: or_, ast.BitAnd: and_}


class ProgramError(Exception):
    """The program is outside the subset, failed, or exhausted its budget."""


class Budget:
    """Steps that are left: charging more than that ends the program."""

    def __init__(self, steps: int):
        self.left = steps

    def charge(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise ValueError("the budget of steps is spent")


class Stream:
    """An iterator of the program: items come once, and it equals only itself."""

    def __init__(self, items: Iterator[Any]):
        self.items = items


def each(budget: Budget, values: Any) -> Iterator[Any]:
    """The items of anything that can be looped over, one at a time."""
    if not isinstance(values, list | tuple | str | range | dict | set | Stream):
        raise ProgramError(f"{type(values).__name__} cannot be looped over")
    for item in values.items if isinstance(values, Stream) else values:
        budget.charge(1)
        yield item


def elements(budget: Budget, values: Any) -> list[Any]:
    return list(each(budget, values))


def hashed(budget: Budget, value: Any) -> Any:
    """A value that a dictionary or a set may hold as its key."""
    budget.charge(1)
    if isinstance(value, tuple):
        for item in value:
            hashed(budget, item)
    elif not isinstance(value, int | str | None):
        raise TypeError(f"{type(value).__name__} cannot be a key")
    return value


def charged(budget: Budget, value: Any) -> Any:
    """A new value, charged by its size and refused if it is too wide."""
    if isinstance(value, int):
        if value.bit_length() > BITS:
            raise OverflowError(f"a number of more than {BITS} bits")
    elif isinstance(value, str | list | tuple):
        budget.charge(len(value))
    return value


def sequence(value: Any) -> Any:
    if not isinstance(value, list | tuple | str | range):
        raise ProgramError(f"{type(value).__name__} has no places")
    return value


def combine(budget: Budget, op: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        if isinstance(op, ast.Pow) and (right < 0 or left.bit_length() * right > 2 * BITS):
            raise OverflowError("a power too wide or below one")
        return charged(budget, _ARITHMETIC[type(op)](left, right))
    if isinstance(op, ast.Add) and type(left) is type(right) and isinstance(left, str | list | tuple):
        budget.charge(len(left) + len(right))
        return left + right
    if isinstance(op, ast.Mult) and isinstance(right, str | list | tuple):
        left, right = right, left
    if isinstance(op, ast.Mult) and isinstance(left, str | list | tuple) and isinstance(right, int):
        budget.charge(len(left) * max(right, 0))
        return left * right
    if isinstance(left, set) and isinstance(right, set) and type(op) in _SETS:
        budget.charge(len(left) + len(right))
        return _SETS[type(op)](left, right)
    raise TypeError(f"{type(left).__name__} and {type(right).__name__} are not joined so")


def equal(budget: Budget, left: Any, right: Any, strict: bool = False) -> bool:
    """Python's `==`, charged per element; `strict` also tells True from 1."""
    budget.charge(1)
    if isinstance(left, list | tuple) and type(left) is type(right):
        if len(left) != len(right):
            return False
        return all(equal(budget, *pair, strict) for pair in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        if left.keys() != right.keys():
            return False
        return all(equal(budget, left[key], right[key], strict) for key in left)
    if isinstance(left, list | tuple | dict) or isinstance(right, list | tuple | dict):
        return False
    if isinstance(left, set | range):
        budget.charge(len(left))
    if isinstance(left, str):
        budget.charge(len(left))
    return left == right and (not strict or type(left) is type(right))


def compare(budget: Budget, op: ast.cmpop, left: Any, right: Any) -> bool:
    if isinstance(op, ast.Eq | ast.NotEq):
        return equal(budget, left, right) is isinstance(op, ast.Eq)
    if isinstance(op, ast.Is | ast.IsNot):
        return (left is right) is isinstance(op, ast.Is)
    if isinstance(op, ast.In | ast.NotIn):
        return _contains(budget, right, left) is isinstance(op, ast.In)
    if not all(isinstance(side, int) for side in (left, right)):
        if not all(isinstance(side, str) for side in (left, right)):
            raise ProgramError("only numbers or strings are put in order")
        budget.charge(len(left) + len(right))
    return _ORDER[type(op)](left, right)


def _contains(budget: Budget, values: Any, item: Any) -> bool:
    if isinstance(values, str) and isinstance(item, str):
        budget.charge(len(values) + len(item))
        return item in values
    if isinstance(values, dict | set):
        return hashed(budget, item) in values
    return any(equal(budget, item, other) for other in each(budget, values))
