"""Short labels for long specs: a record writes out every default, a table only what differs from them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from functools import cache

import unmask.decoders
import unmask.tasks  # noqa: F401  importing registers
from unmask.core import decoder
from unmask.errors import UnmaskError
from unmask.registry import Call, parse
from unmask.runs.record import Cell
from unmask.tasks import task

COST_SETTINGS = ("beams", "n", "samples", "interval", "steps")


@cache
def decoder_label(full: str, length: int) -> str:
    """The shortest spec that means `full` at this length, or `full` itself if its decoder is not known here."""
    return _shorten(full, lambda spec: meaning(spec, length))


@cache
def task_label(full: str) -> str:
    return _shorten(full, lambda spec: _written_out(lambda: task.spec(task.make(spec))))


@cache
def meaning(spec: str, length: int) -> str | None:
    """A decoder's spec with every default written out for this length; None if it cannot be used at it."""
    return _written_out(lambda: decoder.spec(decoder.make(spec).resolved(length)))


def _written_out(spec: Callable[[], str]) -> str | None:
    try:
        return spec()
    except (UnmaskError, ValueError, TypeError):
        return None


def rows(cells: Iterable[Cell]) -> dict[str, dict[int, Cell]]:
    """The rows of one model's and task's table: by label, the cell at each length.

    A spec has different steps at another length, so a label's cells are matched by its meaning there. A cell may be
    in two rows (block=16 is the default at length 16); a row that is contained in another is left out.
    """
    by_meaning = {(cell.length, cell.decoder): cell for cell in cells}
    by_label: dict[str, dict[int, Cell]] = {}
    for length, full in by_meaning:
        label = decoder_label(full, length)
        by_label[label] = row(label, by_meaning)
    ranked = sorted(by_label, key=lambda label: (-len(by_label[label]), len(label), label))
    kept: list[str] = []
    for label in ranked:
        if not any(by_label[label].items() <= by_label[other].items() for other in kept):
            kept.append(label)
    return {label: by_label[label] for label in sorted(kept)}


def row(spec: str, by_meaning: dict[tuple[int, str], Cell]) -> dict[int, Cell]:
    """The cells of one spec, by length."""
    lengths = sorted({length for length, _ in by_meaning})
    at = {length: by_meaning.get((length, meaning(spec, length) or spec)) for length in lengths}
    return {length: cell for length, cell in at.items() if cell is not None}


def family(label: str) -> str:
    """A label without the settings that only change the cost: what a sweep over them has in common."""
    try:
        return _text(_without(parse(label), COST_SETTINGS))
    except UnmaskError:
        return label


def visible(text: str) -> str:
    """Names come from files: control characters and what cannot be encoded are shown as boxes."""
    return "".join("□" if unicodedata.category(char) in ("Cc", "Cf", "Cs") else char for char in text)


def _without(call: Call, keys: Iterable[str]) -> Call:
    return Call(call.name, {key: _without(value, keys) for key, value in call.settings.items() if key not in keys})


def _shorten(full: str, read: Callable[[str], str | None]) -> str:
    if read(full) != full:  # from another version, or a package that is not installed
        return full
    return _text(_without_defaults(parse(full), lambda trial: read(_text(trial)) == full))


def _without_defaults(call: Call, same: Callable[[Call], bool]) -> Call:
    """Drop each setting whose absence changes nothing, then do the same inside those that stay."""
    for key in reversed(list(call.settings)):
        trial = Call(call.name, {name: value for name, value in call.settings.items() if name != key})
        if same(trial):
            call = trial
    for key, value in call.settings.items():
        if value.settings:
            inner = _without_defaults(value, lambda trial, key=key, call=call: same(_with(call, key, trial)))
            call = _with(call, key, inner)
    return call


def _with(call: Call, key: str, value: Call) -> Call:
    return Call(call.name, call.settings | {key: value})


def _text(call: Call) -> str:
    inside = ", ".join(f"{key}={_text(value)}" for key, value in call.settings.items())
    name = decoder.text(call.name)  # quoted where it must be
    return f"{name}({inside})" if inside else name
