"""What the small Python can call: builtins and methods, each charged per element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from unmask.tasks.values import Budget, charged, equal


def _flat(budget: Budget, values: Any) -> list[Any]:
    """The elements of a list that can be sorted: all numbers or all strings."""
    flat = _list(budget, values)
    budget.charge(1 + 3 * len(flat))
    if not all(isinstance(value, int) for value in flat):
        if not all(isinstance(value, str) for value in flat):
            raise TypeError("only numbers or strings are put in order")
        budget.charge(sum(map(len, flat)))
    return flat


def _list(budget: Budget, values: Any = ()) -> list[Any]:
    if not isinstance(values, list | tuple | str):
        raise TypeError("a list is needed")
    budget.charge(len(values))
    return list(values)


def _int(budget: Budget, value: Any) -> int:
    if isinstance(value, str):
        budget.charge(len(value))
        if not (value.isascii() and value.removeprefix("-").isdigit() and len(value) < 60):
            raise ValueError("not a whole number")
    elif not isinstance(value, int):
        raise TypeError("not a number")
    return charged(budget, int(value))


def _str(budget: Budget, value: Any) -> str:
    if not isinstance(value, int | str):
        raise TypeError("only numbers and strings become text")
    return charged(budget, str(value))


def _numbers(budget: Budget, values: Any) -> list[int]:
    flat = _flat(budget, values)
    if not all(isinstance(value, int) for value in flat):
        raise TypeError("numbers are needed")
    return flat


def _best(pick: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    return lambda budget, *values: pick(_flat(budget, values[0] if len(values) == 1 else list(values)))


def _number_only(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError("a number is needed")
    return value


def _length(budget: Budget, value: Any) -> int:
    del budget
    return len(value)


def _range(budget: Budget, *ends: Any) -> list[int]:
    """A list, so that its length is charged."""
    numbers = range(*map(_number_only, ends))
    budget.charge(len(numbers))
    return list(numbers)


def _zip(budget: Budget, *lists: Any) -> list[Any]:
    return list(zip(*(_list(budget, values) for values in lists), strict=False))


BUILTINS: dict[str, Callable[..., Any]] = {
    "abs": lambda budget, value: charged(budget, abs(_number_only(value))),
    "all": lambda budget, values: all(_list(budget, values)),
    "any": lambda budget, values: any(_list(budget, values)),
    "bool": lambda budget, value: bool(value),
    "enumerate": lambda budget, values: list(enumerate(_list(budget, values))),
    "int": _int,
    "len": _length,
    "list": _list,
    "max": _best(max),
    "min": _best(min),
    "range": _range,
    "reversed": lambda budget, values: _list(budget, values)[::-1],
    "sorted": lambda budget, values: sorted(_flat(budget, values)),
    "str": _str,
    "sum": lambda budget, values: charged(budget, sum(_numbers(budget, values))),
    "tuple": lambda budget, values=(): tuple(_list(budget, values)),
    "zip": _zip,
}


def _text(method: Callable[..., Any], *kinds: type) -> Callable[..., Any]:
    """A method of strings with at most these kinds of arguments."""

    def charge_and_call(budget: Budget, text: str, *arguments: Any) -> Any:
        if len(arguments) > len(kinds) or not all(map(isinstance, arguments, kinds)):
            raise TypeError("other arguments than the method takes")
        budget.charge(1 + len(text) + sum(len(argument) for argument in arguments if isinstance(argument, str)))
        return charged(budget, method(text, *arguments))

    return charge_and_call


def _replace(budget: Budget, text: str, old: Any, new: Any) -> str:
    if not (isinstance(old, str) and isinstance(new, str)):
        raise TypeError("strings are needed")
    budget.charge(1 + len(text) + (len(text) + 1) * len(new))
    return text.replace(old, new)


def _join(budget: Budget, text: str, values: Any) -> str:
    parts: Sequence[Any] = _list(budget, values)
    if not all(isinstance(part, str) for part in parts):
        raise TypeError("strings are needed")
    budget.charge(len(text) * len(parts) + sum(map(len, parts)))
    return text.join(parts)


def _append(budget: Budget, items: list[Any], value: Any) -> None:
    budget.charge(1)
    items.append(value)


def _extend(budget: Budget, items: list[Any], values: Any) -> None:
    items.extend(_list(budget, values))


def _insert(budget: Budget, items: list[Any], place: Any, value: Any) -> None:
    budget.charge(1 + len(items))
    items.insert(_number_only(place), value)


def _pop(budget: Budget, items: list[Any], place: Any = -1) -> Any:
    budget.charge(1 + len(items))
    return items.pop(_number_only(place))


def _place(budget: Budget, items: Sequence[Any], value: Any) -> int:
    for place, other in enumerate(items):
        if equal(budget, value, other):
            return place
    raise ValueError("not in the list")


def _count(budget: Budget, items: Sequence[Any], value: Any) -> int:
    return sum(equal(budget, value, other) for other in items)


def _sort(budget: Budget, items: list[Any]) -> None:
    items[:] = sorted(_flat(budget, items))


def _reverse(budget: Budget, items: list[Any]) -> None:
    budget.charge(len(items))
    items.reverse()


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
