"""Short names for long specs: a record writes every default out, a table only what was chosen."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from functools import cache

import unmask.decoders
import unmask.tasks  # noqa: F401  the rooms register what they hold
from unmask.core import decoder
from unmask.errors import UnmaskError
from unmask.registry import Call, parse
from unmask.runs.record import Cell
from unmask.tasks import task

BUYING = ("beams", "n", "samples", "interval", "steps")


@cache
def decoder_label(full: str, length: int) -> str:
    """The shortest spec that means `full` at this length; `full` itself where its decoder is not known here."""
    return _shorten(full, lambda spec: meaning(spec, length))


@cache
def task_label(full: str) -> str:
    return _shorten(full, lambda spec: task.spec(task.make(spec)))


@cache
def meaning(spec: str, length: int) -> str | None:
    """A decoder's spec with every default written out for this length; None where it cannot be used there."""
    try:
        return decoder.spec(decoder.make(spec).resolved(length))
    except UnmaskError:
        return None


def rows(cells: Iterable[Cell]) -> dict[str, dict[int, Cell]]:
    """The rows of a model's and task's table: by label the cell at each length.

    One spec has other steps at another length, so a label's cells are found by what it means there. A cell may stand
    in two rows (block=16 is the default at length 16); a row that says nothing new is left out.
    """
    by_meaning = {(cell.length, cell.decoder): cell for cell in cells}
    found: dict[str, dict[int, Cell]] = {}
    for length, full in by_meaning:
        label = decoder_label(full, length)
        found[label] = row(label, by_meaning)
    ranked = sorted(found, key=lambda label: (-len(found[label]), len(label), label))
    kept: list[str] = []
    for label in ranked:
        if not any(found[label].items() <= found[other].items() for other in kept):
            kept.append(label)
    return {label: found[label] for label in sorted(kept)}


def row(spec: str, by_meaning: dict[tuple[int, str], Cell]) -> dict[int, Cell]:
    """What is recorded of one spec."""
    lengths = sorted({length for length, _ in by_meaning})
    at = {length: by_meaning.get((length, meaning(spec, length) or spec)) for length in lengths}
    return {length: cell for length, cell in at.items() if cell is not None}


def family(label: str) -> str:
    """A label without the settings that buy more compute: what a sweep over them has in common."""
    try:
        return _text(_without(parse(label), BUYING))
    except UnmaskError:
        return label


def visible(text: str) -> str:
    """Names come from files: what would steer a terminal, or no font or file can hold, is shown as a box instead."""
    return "".join("□" if unicodedata.category(char) in ("Cc", "Cf", "Cs") else char for char in text)


def _without(call: Call, keys: Iterable[str]) -> Call:
    return Call(call.name, {key: _without(value, keys) for key, value in call.settings.items() if key not in keys})


def _shorten(full: str, read: Callable[[str], str | None]) -> str:
    try:
        call = parse(full)
        if read(full) != full:
            return full
        return _text(_without_defaults(call, lambda trial: read(_text(trial)) == full))
    except (UnmaskError, ValueError, TypeError):  # another version's, or a package's that is not installed
        return full


def _without_defaults(call: Call, same: Callable[[Call], bool]) -> Call:
    """Leave out each setting whose absence changes nothing, then look inside those that stay."""
    for key in reversed(list(call.settings)):
        trial = Call(call.name, {name: value for name, value in call.settings.items() if name != key})
        if _still(same, trial):
            call = trial
    for key, value in call.settings.items():
        if value.settings:
            inner = _without_defaults(value, lambda trial, key=key, call=call: same(_with(call, key, trial)))
            call = _with(call, key, inner)
    return call


def _with(call: Call, key: str, value: Call) -> Call:
    return Call(call.name, call.settings | {key: value})


def _still(same: Callable[[Call], bool], trial: Call) -> bool:
    try:
        return same(trial)
    except UnmaskError:
        return False


def _text(call: Call) -> str:
    inside = ", ".join(f"{key}={_text(value)}" for key, value in call.settings.items())
    name = decoder.text(call.name)  # quoted where it must be
    return f"{name}({inside})" if inside else name
