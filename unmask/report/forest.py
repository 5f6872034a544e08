"""Differences side by side, each with its interval: who is above whom, and how surely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unmask.report.figures import COLOURS, MARKS, render
from unmask.report.labels import visible

SURE = 1.96  # standard errors to either side: 95 %
ROOM = 0.7  # of a row's height, shared by its marks


@dataclass(frozen=True)
class Mark:
    """One difference, a share."""

    row: str
    series: str
    difference: float
    error: float | None


def forest(marks: Sequence[Mark], kind: str, title: str, axis: str) -> bytes:
    """A row a rival, a mark a series, zero drawn through; as `svg` or `png`."""
    rows = list(dict.fromkeys(mark.row for mark in marks))
    series = list(dict.fromkeys(mark.series for mark in marks))

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        axes.axvline(0, color="#808080", linewidth=1, linestyle="--")
        for place, name in enumerate(series):
            mine = [mark for mark in marks if mark.series == name]
            lift = ROOM * ((place + 0.5) / len(series) - 0.5)
            axes.errorbar(
                [100 * mark.difference for mark in mine],
                [rows.index(mark.row) + lift for mark in mine],
                xerr=[100 * SURE * (mark.error or 0.0) for mark in mine],
                label=visible(name),
                color=COLOURS[place % len(COLOURS)],
                marker=MARKS[place % len(MARKS)],
                linestyle="none",
                markersize=5,
                capsize=2,
                elinewidth=0.8,
            )
        axes.set_yticks(range(len(rows)), list(map(visible, rows)))
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_title(visible(title), fontsize=10, loc="left")
        axes.set_xlabel(f"{axis}  (95 % interval)")
        figure.legend(loc="outside lower left", ncols=min(5, len(series)))

    return render(paint, (7.2, 1.6 + 0.5 * len(rows)), kind, layout="constrained")
