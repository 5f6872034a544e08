"""What the small Python can call: builtins and methods, each charged per element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from unmask.tasks.generated.containers import DICTIONARY, SET
from unmask.tasks.generated.values import Budget, Stream, charged, each, elements, equal, hashed, sequence

Key = Callable[[Any], Any]


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
    return elements(budget, values)


def _sorted(budget: Budget, values: Any, key: Key | None = None, reverse: Any = False) -> list[Any]:
    items = _list(budget, values)
    keys = _flat(budget, items if key is None else [key(item) for item in items])
    order = sorted(range(len(items)), key=keys.__getitem__, reverse=bool(reverse))
    return [items[place] for place in order]


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


def _best(pick: Callable[..., Any]) -> Callable[..., Any]:
    def best(budget: Budget, *values: Any, key: Key | None = None, **default: Any) -> Any:
        items = _list(budget, values[0] if len(values) == 1 else values)
        keys = _flat(budget, items if key is None else [key(item) for item in items])
        if not items and default.keys() == {"default"}:
            return default["default"]
        return items[pick(range(len(items)), key=keys.__getitem__)]

    return best


def _number_only(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError("a number is needed")
    return value


def _length(budget: Budget, value: Any) -> int:
    del budget
    if isinstance(value, Stream):
        raise TypeError("an iterator has no length")
    return len(value)


def _range(budget: Budget, *ends: Any) -> range:
    """Charged by its length at once."""
    numbers = range(*map(_number_only, ends))
    budget.charge(len(numbers))
    return numbers


def _zip(budget: Budget, *lists: Any, strict: Any = False) -> Stream:
    return Stream(zip(*(each(budget, values) for values in lists), strict=bool(strict)))


def _enumerate(budget: Budget, values: Any, start: Any = 0) -> Stream:
    return Stream(enumerate(each(budget, values), _number_only(start)))


def _reversed(budget: Budget, values: Any) -> Stream:
    return Stream(each(budget, sequence(values)[::-1]))


def _next(budget: Budget, values: Any, *default: Any) -> Any:
    if not isinstance(values, Stream) or len(default) > 1:
        raise TypeError("only an iterator has a next item")
    budget.charge(1)
    for item in values.items:
        return item
    if not default:
        raise ValueError("there is no next item")
    return default[0]


def _sum(budget: Budget, values: Any, start: Any = 0) -> int:
    return charged(budget, sum(_numbers(budget, values), _number_only(start)))


def _dict(budget: Budget, values: Any = ()) -> dict[Any, Any]:
    pairs = values.items() if isinstance(values, dict) else each(budget, values)
    return {hashed(budget, key): value for key, value in pairs}


def _set(budget: Budget, values: Any = ()) -> set[Any]:
    return {hashed(budget, item) for item in each(budget, values)}


BUILTINS: dict[str, Callable[..., Any]] = {
    "abs": lambda budget, value: charged(budget, abs(_number_only(value))),
    "all": lambda budget, values: all(each(budget, values)),
    "any": lambda budget, values: any(each(budget, values)),
    "bool": lambda budget, value: bool(value),
    "dict": _dict,
    "enumerate": _enumerate,
    "int": _int,
    "iter": lambda budget, values: values if isinstance(values, Stream) else Stream(each(budget, values)),
    "len": _length,
    "list": _list,
    "max": _best(max),
    "min": _best(min),
    "next": _next,
    "range": _range,
    "reversed": _reversed,
    "set": _set,
    "sorted": _sorted,
    "str": _str,
    "sum": _sum,
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


def _sort(budget: Budget, items: list[Any], key: Key | None = None, reverse: Any = False) -> None:
    items[:] = _sorted(budget, items, key, reverse)


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
    **{(dict, name): method for name, method in DICTIONARY.items()},
    **{(set, name): method for name, method in SET.items()},
}
