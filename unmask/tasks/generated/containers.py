"""Methods of the small Python's dictionaries and sets, each charged per element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unmask.tasks.generated.values import Budget, Stream, each, hashed

_Entries = dict[Any, Any]


def _get(budget: Budget, entries: _Entries, key: Any, default: Any = None) -> Any:
    return entries.get(hashed(budget, key), default)


def _set_default(budget: Budget, entries: _Entries, key: Any, default: Any = None) -> Any:
    return entries.setdefault(hashed(budget, key), default)


def _take(budget: Budget, entries: _Entries, key: Any, *default: Any) -> Any:
    return entries.pop(hashed(budget, key), *default)


def _update(budget: Budget, entries: _Entries, other: Any) -> None:
    for key, value in other.items() if isinstance(other, dict) else each(budget, other):
        entries[hashed(budget, key)] = value


def _view(view: Callable[[_Entries], Any]) -> Callable[..., Stream]:
    """Keys, values or items, to be looped over."""
    return lambda budget, entries: Stream(each(budget, list(view(entries))))


DICTIONARY: dict[str, Callable[..., Any]] = {
    "get": _get,
    "items": _view(dict.items),
    "keys": _view(dict.keys),
    "pop": _take,
    "setdefault": _set_default,
    "update": _update,
    "values": _view(dict.values),
}


def _with_item(method: Callable[[set[Any], Any], None]) -> Callable[..., None]:
    return lambda budget, items, item: method(items, hashed(budget, item))


def _with_others(method: Callable[[set[Any], set[Any]], Any]) -> Callable[..., Any]:
    def combine(budget: Budget, items: set[Any], other: Any) -> Any:
        budget.charge(len(items))
        return method(items, {hashed(budget, item) for item in each(budget, other)})

    return combine


SET: dict[str, Callable[..., Any]] = {
    "add": _with_item(set.add),
    "discard": _with_item(set.discard),
    "remove": _with_item(set.remove),
    **{name: _with_others(getattr(set, name)) for name in ("union", "intersection", "difference", "update")},
    **{name: _with_others(getattr(set, name)) for name in ("issubset", "issuperset", "isdisjoint")},
}
