"""Differences side by side, each with its 95 % interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unmask.report.figures import points_with_errors, render
from unmask.report.labels import visible
from unmask.report.statistics import Difference

INTERVAL = 1.96  # standard errors to either side: 95 %
SPREAD = 0.7  # of a row's height, shared by its marks


def forest(rows: Mapping[str, Mapping[str, Difference]], kind: str, title: str, axis: str) -> bytes:
    """A row per rival, a mark per series and a line at zero; as `svg` or `png`."""
    series = list(dict.fromkeys(name for row in rows.values() for name in row))

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        axes.axvline(0, color="#808080", linewidth=1, linestyle="--")
        for place, name in enumerate(series):
            marks = {height: row[name] for height, row in enumerate(rows.values()) if name in row}
            shift = SPREAD * ((place + 0.5) / len(series) - 0.5)
            points_with_errors(
                axes,
                place,
                visible(name),
                [100 * mark.value for mark in marks.values()],
                [height + shift for height in marks],
                xerr=[100 * INTERVAL * (mark.error or 0.0) for mark in marks.values()],
            )
        axes.set_yticks(range(len(rows)), list(map(visible, rows)))
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_title(visible(title), fontsize=10, loc="left")
        axes.set_xlabel(f"{axis}  (95 % interval)")
        figure.legend(loc="outside lower left", ncols=min(5, len(series)))

    return render(paint, (7.2, 1.6 + 0.5 * len(rows)), kind, layout="constrained")
