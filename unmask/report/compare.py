"""Every decoder against one of them, on the same problems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from unmask.errors import UnmaskError, nearest
from unmask.report import labels
from unmask.report.results import Group, Row, result_of
from unmask.report.statistics import Comparison, compare

BASELINE = "low-confidence"  # unless another is asked for


@dataclass(frozen=True)
class Pair:
    group: Group
    row: Row
    length: int | None  # None: the average over the lengths of both
    found: Comparison

    def json(self) -> dict[str, Any]:
        return asdict(self.found)


def choose_baseline(groups: Sequence[Group], asked: str | None) -> str | None:
    """The label of the asked one, which must be there; else the usual one where it is."""
    for group in groups:
        if found := find_row(group, BASELINE if asked is None else asked):
            return found.label
    if asked is None:
        return None
    known = {row.label for group in groups for row in group.rows}
    raise UnmaskError(f"no run here has the decoder {asked!r}: {nearest(asked, known)}")


def find_row(group: Group, spec: str) -> Row | None:
    """By its label or by what it means, so that `ots` finds order-token-search."""
    for row in group.rows:
        if row.label == spec:
            return row
    cells = labels.row(spec, {(cell.length, cell.decoder): cell for cell in group.records})
    for row in group.rows:
        if row.samples == 1 and cells and row.cells == cells:
            return row
    results = {length: result_of(group.records[cell]) for length, cell in cells.items()}
    return Row(spec, results, cells, 1) if cells else None


def compare_rows(group: Group, baseline: str) -> Iterator[Pair]:
    before = find_row(group, baseline)
    if before is None:
        return
    for row in group.rows:
        common = [length for length in row.results if length in before.results]
        if row.samples == before.samples and all(row.cells[length] == before.cells[length] for length in common):
            continue
        for length in common:
            found = compare(before.results[length].right, row.results[length].right)
            if found is not None:
                yield Pair(group, row, length, found)
        if len(common) > 1:
            means = [_mean([one.results[length].right for length in common]) for one in (before, row)]
            found = compare(*means)
            if found is not None:
                yield Pair(group, row, None, found)


def _mean(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """By problem, over the lengths; problems that some length lacks are left out."""
    everywhere = set(parts[0]).intersection(*parts[1:])
    return {problem: sum(part[problem] for part in parts) / len(parts) for problem in everywhere}
