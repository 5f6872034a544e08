"""Plots of runs, the same bytes every time: accuracy against rows and length, pass@k."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from unmask.report import labels
from unmask.report.figures import COLOURS, MARKS, render
from unmask.report.results import Group, Row, pass_curve
from unmask.report.statistics import Estimate
from unmask.report.tables import is_drawn


@dataclass(frozen=True)
class Point:
    x: float
    found: Estimate


@dataclass(frozen=True)
class Plot:
    name: str  # of its file
    title: str
    x: str  # the axis
    lines: tuple[tuple[str, tuple[Point, ...]], ...]  # by label
    y: str = "right, %  (± standard error)"
    level: tuple[str, float] | None = None  # a line across: its label and height
    zero: bool = False  # the axis begins at nothing
    shares: bool = True  # of one, shown in percent


def plots(groups: Sequence[Group]) -> list[Plot]:
    """What there is to draw: a figure for one point, or for one length, says nothing."""
    made: list[Plot] = []
    for number, group in enumerate(groups, 1):
        rows = [row for row in group.rows if any(one.accuracy.n for one in row.results.values())]
        if len(rows) > 1 or len(group.lengths) > 1:
            made.append(_against_rows(group, rows, number))
        if len(group.lengths) > 1:
            lines = tuple((row.label, _points(row, True)) for row in rows)
            made.append(Plot(f"{number}-length", _title(group), "length", lines))
        made += _passes(group, number)
    return [plot for plot in made if plot.lines]


def _against_rows(group: Group, rows: Sequence[Row], number: int) -> Plot:
    """A line joins a decoder's lengths; where one length was swept over settings, it joins those instead."""
    if len(group.lengths) == 1:
        families: dict[str, list[Row]] = {}
        for row in rows:
            families.setdefault(_family(row), []).append(row)
        swept = tuple(
            (name if len(some) > 1 else some[0].label, tuple(point for row in some for point in _points(row, False)))
            for name, some in families.items()  # rows come cheapest first
        )
        return Plot(f"{number}-rows", f"{_title(group)}, L={group.lengths[0]}", "rows (NFE ÷ L)", swept)
    lines = tuple((row.label, _points(row, False)) for row in rows)
    return Plot(f"{number}-rows", _title(group), "rows (NFE ÷ L)", lines)


def _passes(group: Group, number: int) -> Iterable[Plot]:
    for length in group.lengths:
        lines = []
        for row in group.rows:
            curve = pass_curve(group.records[row.cells[length]]) if is_drawn(row, length) else {}
            if len(curve) > 1:
                lines.append((row.label, tuple(Point(float(k), found) for k, found in curve.items())))
        yield Plot(f"{number}-pass-{length}", f"{_title(group)}, pass@k, L={length}", "k", tuple(lines))


def _family(row: Row) -> str:
    if row.samples > 1:
        return f"majority of stored × {row.label.partition(' × ')[2]}"
    return labels.family(row.label)


def _title(group: Group) -> str:
    return f"{group.model} · {group.name}"


def _points(row: Row, by_length: bool) -> tuple[Point, ...]:
    pairs = ((length if by_length else one.cost["rows"], one.accuracy) for length, one in row.results.items())
    return tuple(Point(float(x), found) for x, found in pairs if found.value is not None and x > 0)


def draw(plot: Plot, kind: str) -> bytes:
    """As `svg` or `png`."""

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        times = 100 if plot.shares else 1
        for place, (label, points) in enumerate(plot.lines):
            apart = 1.012 ** (place - (len(plot.lines) - 1) / 2)  # or equal points would hide one another
            _line(axes, place, label, [Point(point.x * apart, point.found) for point in points], times)
        if plot.level is not None:
            label, height = plot.level
            axes.axhline(times * height, label=labels.visible(label), color="#666666", linestyle="--", linewidth=1)
        _dress(axes, plot)
        figure.legend(loc="outside lower left", ncols=1 + (max(len(label) for label, _ in plot.lines) < 36))

    return render(paint, (6.4, 3.8 + 0.14 * len(plot.lines)), kind, layout="constrained")


def _line(axes: Any, place: int, label: str, points: Sequence[Point], times: int) -> None:
    axes.errorbar(
        [point.x for point in points],
        [times * (point.found.value or 0.0) for point in points],
        yerr=[times * (point.found.error or 0.0) for point in points],
        label=labels.visible(label),
        color=COLOURS[place % len(COLOURS)],
        marker=MARKS[place % len(MARKS)],  # one more than there are colours: no two lines look alike
        markersize=5,
        linewidth=1.3,
        capsize=2,
        elinewidth=0.8,
    )


def _dress(axes: Any, plot: Plot) -> None:
    axes.set_title(labels.visible(plot.title), fontsize=10, loc="left")
    axes.set(xlabel=plot.x, ylabel=plot.y)
    axes.set_xscale("log", base=2)
    places = sorted({point.x for _, points in plot.lines for point in points})
    kept: list[float] = []
    for x in places:
        if not kept or x >= 1.15 * kept[-1]:
            kept.append(x)
    axes.set_xticks(kept, [f"{x:g}" if x < 1e5 else f"{x:.0f}" for x in kept])
    axes.minorticks_off()
    if len(places) == 1:
        axes.set_xlim(places[0] / 2, places[0] * 2)
    low, high = axes.get_ylim()
    axes.set_ylim(0 if plot.zero else max(low, -2), min(high, 102) if plot.shares else high)


def describe(plot: Plot) -> str:
    """What a reader who cannot see it is told."""
    lines = []
    for label, points in plot.lines:
        figures = ", ".join(f"{100 * (point.found.value or 0):.1f} % at {point.x:g}" for point in points)
        lines.append(f"{label}: {figures}")
    return f"{plot.title}, accuracy against {plot.x}. " + "; ".join(lines)
