"""Differences side by side, each with its 95 % interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unmask.report.figures import points_with_errors, render
from unmask.report.labels import visible

INTERVAL = 1.96  # standard errors to either side: 95 %
SPREAD = 0.7  # of a row's height, shared by its marks


@dataclass(frozen=True)
class Mark:
    """One difference, as a share."""

    row: str
    series: str
    difference: float
    error: float | None


def forest(marks: Sequence[Mark], kind: str, title: str, axis: str) -> bytes:
    """A row per rival, a mark per series and a line at zero; as `svg` or `png`."""
    rows = list(dict.fromkeys(mark.row for mark in marks))
    series = list(dict.fromkeys(mark.series for mark in marks))

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        axes.axvline(0, color="#808080", linewidth=1, linestyle="--")
        for place, name in enumerate(series):
            shown = [mark for mark in marks if mark.series == name]
            shift = SPREAD * ((place + 0.5) / len(series) - 0.5)
            points_with_errors(
                axes,
                place,
                visible(name),
                [100 * mark.difference for mark in shown],
                [rows.index(mark.row) + shift for mark in shown],
                xerr=[100 * INTERVAL * (mark.error or 0.0) for mark in shown],
            )
        axes.set_yticks(range(len(rows)), list(map(visible, rows)))
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_title(visible(title), fontsize=10, loc="left")
        axes.set_xlabel(f"{axis}  (95 % interval)")
        figure.legend(loc="outside lower left", ncols=min(5, len(series)))

    return render(paint, (7.2, 1.6 + 0.5 * len(rows)), kind, layout="constrained")
