"""What the small Python can call, and how its values are joined and compared; each element is paid for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

BITS = 256  # the widest whole number


class Purse:
    """A budget of steps: paying more than is left ends the program."""

    def __init__(self, steps: int):
        self.left = steps

    def pay(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise ValueError("the budget of steps is spent")


def hold(purse: Purse, value: Any) -> Any:
    """A value just made, paid for by its size and refused where it is too wide."""
    if isinstance(value, int):
        if value.bit_length() > BITS:
            raise OverflowError(f"a number of more than {BITS} bits")
    elif isinstance(value, str | list | tuple):
        purse.pay(len(value))
    return value


def equal(purse: Purse, left: Any, right: Any, strict: bool = False) -> bool:
    """Python's `==`, paid for by element; `strict` also tells True from 1."""
    purse.pay(1)
    if isinstance(left, list | tuple) and type(left) is type(right):
        if len(left) != len(right):
            return False
        return all(equal(purse, one, other, strict) for one, other in zip(left, right, strict=True))
    if isinstance(left, list | tuple) or isinstance(right, list | tuple):
        return False
    if isinstance(left, str):
        purse.pay(len(left))
    return left == right and (not strict or type(left) is type(right))


def combine(purse: Purse, op: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        return hold(purse, _number(op, left, right))
    if isinstance(op, ast.Add) and type(left) is type(right) and isinstance(left, str | list | tuple):
        purse.pay(len(left) + len(right))
        return left + right
    if isinstance(op, ast.Mult) and isinstance(right, str | list | tuple):
        left, right = right, left
    if isinstance(op, ast.Mult) and isinstance(left, str | list | tuple) and isinstance(right, int):
        purse.pay(len(left) * max(right, 0))
        return left * right
    raise TypeError(f"{type(left).__name__} and {type(right).__name__} are not joined so")


def _number(op: ast.operator, left: int, right: int) -> int:
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.FloorDiv():
            return left // right
        case ast.Mod():
            return left % right
        case ast.Pow():
            if right < 0 or left.bit_length() * right > 2 * BITS:
                raise OverflowError("a power too wide or below one")
            return left**right
    raise TypeError(f"{type(op).__name__} is not in the small Python")


def _flat(purse: Purse, values: Any) -> list[Any]:
    """The elements, all numbers or all strings, paid for: what may be put in order."""
    if not isinstance(values, list | tuple | str):
        raise TypeError("a list is needed")
    purse.pay(1 + 4 * len(values))
    flat = list(values)
    if not all(isinstance(value, int) for value in flat):
        if not all(isinstance(value, str) for value in flat):
            raise TypeError("only numbers or strings are put in order")
        purse.pay(sum(map(len, flat)))
    return flat


def _list(purse: Purse, values: Any = ()) -> list[Any]:
    if not isinstance(values, list | tuple | str):
        raise TypeError("a list is needed")
    purse.pay(len(values))
    return list(values)


def _int(purse: Purse, value: Any) -> int:
    if isinstance(value, str):
        purse.pay(len(value))
        if not (value.isascii() and value.removeprefix("-").isdigit() and len(value) < 60):
            raise ValueError("not a whole number")
    elif not isinstance(value, int):
        raise TypeError("not a number")
    return hold(purse, int(value))


def _str(purse: Purse, value: Any) -> str:
    if not isinstance(value, int | str):
        raise TypeError("only numbers and strings become text")
    return hold(purse, str(value))


def _numbers(purse: Purse, values: Any) -> list[int]:
    flat = _flat(purse, values)
    if not all(isinstance(value, int) for value in flat):
        raise TypeError("numbers are needed")
    return flat


def _best(pick: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    return lambda purse, *values: pick(_flat(purse, values[0] if len(values) == 1 else list(values)))


def _number_only(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError("a number is needed")
    return value


def _length(purse: Purse, value: Any) -> int:
    del purse
    return len(value)


def _range(purse: Purse, *ends: Any) -> list[int]:
    """A list, so that a short program holds no long thing it has not paid for."""
    numbers = range(*map(_number_only, ends))
    purse.pay(len(numbers))
    return list(numbers)


def _zip(purse: Purse, *lists: Any) -> list[Any]:
    return list(zip(*(_list(purse, values) for values in lists), strict=False))


BUILTINS: dict[str, Callable[..., Any]] = {
    "abs": lambda purse, value: hold(purse, abs(_number_only(value))),
    "all": lambda purse, values: all(_list(purse, values)),
    "any": lambda purse, values: any(_list(purse, values)),
    "bool": lambda purse, value: bool(value),
    "enumerate": lambda purse, values: list(enumerate(_list(purse, values))),
    "int": _int,
    "len": _length,
    "list": _list,
    "max": _best(max),
    "min": _best(min),
    "range": _range,
    "reversed": lambda purse, values: _list(purse, values)[::-1],
    "sorted": lambda purse, values: sorted(_flat(purse, values)),
    "str": _str,
    "sum": lambda purse, values: hold(purse, sum(_numbers(purse, values))),
    "tuple": lambda purse, values=(): tuple(_list(purse, values)),
    "zip": _zip,
}


def _text(method: Callable[..., Any], *kinds: type) -> Callable[..., Any]:
    """A string's method whose arguments are of these kinds, fewer allowed."""

    def paid(purse: Purse, held: str, *arguments: Any) -> Any:
        fits = len(arguments) <= len(kinds) and all(map(isinstance, arguments, kinds))
        if not fits:
            raise TypeError("other arguments than the method takes")
        purse.pay(1 + len(held) + sum(len(argument) for argument in arguments if isinstance(argument, str)))
        return hold(purse, method(held, *arguments))

    return paid


def _replace(purse: Purse, held: str, old: Any, new: Any) -> str:
    if not (isinstance(old, str) and isinstance(new, str)):
        raise TypeError("strings are needed")
    purse.pay(1 + len(held) + (len(held) + 1) * len(new))
    return held.replace(old, new)


def _join(purse: Purse, held: str, values: Any) -> str:
    parts: Sequence[Any] = _list(purse, values)
    if not all(isinstance(part, str) for part in parts):
        raise TypeError("strings are needed")
    purse.pay(len(held) * len(parts) + sum(map(len, parts)))
    return held.join(parts)


def _append(purse: Purse, held: list[Any], value: Any) -> None:
    purse.pay(1)
    held.append(value)


def _extend(purse: Purse, held: list[Any], values: Any) -> None:
    held.extend(_list(purse, values))


def _insert(purse: Purse, held: list[Any], place: Any, value: Any) -> None:
    purse.pay(1 + len(held))
    held.insert(_number_only(place), value)


def _pop(purse: Purse, held: list[Any], place: Any = -1) -> Any:
    purse.pay(1 + len(held))
    return held.pop(_number_only(place))


def _place(purse: Purse, held: Sequence[Any], value: Any) -> int:
    for place, other in enumerate(held):
        if equal(purse, value, other):
            return place
    raise ValueError("not in the list")


def _count(purse: Purse, held: Sequence[Any], value: Any) -> int:
    return sum(equal(purse, value, other) for other in held)


def _sort(purse: Purse, held: list[Any]) -> None:
    held[:] = sorted(_flat(purse, held))


def _reverse(purse: Purse, held: list[Any]) -> None:
    purse.pay(len(held))
    held.reverse()


METHODS: dict[tuple[type, str], Callable[..., Any]] = {
    **{(str, name): _text(getattr(str, name)) for name in ("upper", "lower", "title", "capitalize", "swapcase")},
    **{(str, name): _text(getattr(str, name)) for name in ("isdigit", "isalpha", "isupper", "islower", "isspace")},
    **{(str, name): _text(getattr(str, name), str) for name in ("strip", "lstrip", "rstrip", "split")},
    **{(str, name): _text(getattr(str, name), str) for name in ("startswith", "endswith", "count", "find", "index")},
    (str, "replace"): _replace,
    (str, "join"): _join,
    (list, "append"): _append,
    (list, "extend"): _extend,
    (list, "insert"): _insert,
    (list, "pop"): _pop,
    (list, "index"): _place,
    (list, "count"): _count,
    (list, "sort"): _sort,
    (list, "reverse"): _reverse,
}
