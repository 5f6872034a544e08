"""Every decoder against one of them, on the same problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from unmask.errors import UnmaskError, nearest
from unmask.report import gather as labels
from unmask.report.gather import Group, Series, pass_curve
from unmask.report.statistics import Comparison, compare, holm
from unmask.runs.progress import wilson

BASELINE = "low-confidence"


@dataclass(frozen=True)
class Pair:
    group: Group
    series: Series
    length: int | None  # None: the average over the lengths of both
    comparison: Comparison


def choose_baseline(groups: Sequence[Group], spec: str | None) -> str | None:
    """The label of the decoder asked for, which must be there; else the usual baseline if it is there."""
    for group in groups:
        if series := find_series(group, BASELINE if spec is None else spec):
            return series.label
    if spec is None:
        return None
    known = {series.label for group in groups for series in group.series}
    raise UnmaskError(f"no run here has the decoder {spec!r}: {nearest(spec, known)}")


def find_series(group: Group, spec: str) -> Series | None:
    """By label or by meaning, so that `ots` finds order-token-search."""
    for series in group.series:
        if series.label == spec:
            return series
    cells = labels.row(spec, {(cell.length, cell.decoder): cell for cell in group.records})
    for series in group.series:
        if series.samples == 1 and cells and series.cells == cells:
            return series
    return Series(spec, {length: group.records[cell] for length, cell in cells.items()}) if cells else None


def compare_with(group: Group, baseline: str | None) -> Iterator[Pair]:
    before = baseline and find_series(group, baseline)
    if not before:
        return
    for series in group.series:
        common = [length for length in series.records if length in before.records]
        if series.samples == before.samples and all(series.cells[at] == before.cells[at] for at in common):
            continue
        for length in [*common, *([None] if len(common) > 1 else [])]:
            lengths = common if length is None else [length]
            comparison = compare(before.by_problem(lengths), series.by_problem(lengths))
            if comparison is not None:
                yield Pair(group, series, length, comparison)


def corrected_chances(pairs: Sequence[Pair]) -> list[float]:
    """Of each pair its p, corrected for all comparisons of its table (Holm)."""
    tables: dict[int, list[int]] = {}  # by group, the places of its pairs
    for place, pair in enumerate(pairs):
        tables.setdefault(id(pair.group), []).append(place)
    chances = [pair.comparison.p for pair in pairs]
    for places in tables.values():
        for place, p in zip(places, holm([pairs[place].comparison.p for place in places]), strict=True):
            chances[place] = p
    return chances


def cell_figures(groups: Sequence[Group], pairs: Sequence[Pair] = ()) -> list[dict[str, Any]]:
    """One JSON object per cell, with everything that the tables show."""
    corrected = corrected_chances(pairs)
    compared = {
        (id(pair.series), pair.length): asdict(pair.comparison) | {"p_corrected": p}
        for pair, p in zip(pairs, corrected, strict=True)
    }
    return [
        _figures(group, series, length) | {"against": compared.get((id(series), length))}
        for group in groups
        for series in group.series
        for length in series.results
    ]


def _figures(group: Group, series: Series, length: int) -> dict[str, Any]:
    result, records = series.results[length], series.records[length]
    score = result.estimate("score")
    interval = wilson(result.accuracy.value, result.accuracy.n) if result.accuracy.value is not None else (None, None)
    curve = pass_curve(records) if series.samples == 1 else {}
    return {
        "model": group.model,
        "task": group.task,
        "task_version": records[0].task_version,
        "decoder": series.label,
        "spec": records[0].decoder,
        "vote": series.samples if series.samples > 1 else None,
        "length": length,
        "problems": result.accuracy.n,
        "draws": result.draws,
        "failed": result.failed,
        "accuracy": result.accuracy.value,
        "error": result.accuracy.error,
        "low": interval[0],
        "high": interval[1],
        "score": score.value,
        "score_error": score.error,
        **result.cost,
        "pass": {str(k): estimate.value for k, estimate in curve.items()} if len(curve) > 1 else {},
    }
