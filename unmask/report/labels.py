"""Rows of tables by their labels, and names as they can be shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from unmask.errors import UnmaskError
from unmask.registry import parse
from unmask.runs.record import Cell
from unmask.runs.short_spec import decoder_label, meaning, spec_text, without

COST_SETTINGS = ("beams", "n", "samples", "interval", "steps")


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
        return spec_text(without(parse(label), COST_SETTINGS))
    except UnmaskError:
        return label


def visible(text: str) -> str:
    """Names come from files: control characters and what cannot be encoded are shown as boxes."""
    return "".join("□" if unicodedata.category(char) in ("Cc", "Cf", "Cs") else char for char in text)
