"""Accuracy against cost with every point named beside it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from unmask.report.plots import COLOURS, Plot, Point, render

SIZE = (7.2, 4.4)  # inches
LOWEST = 0.4  # points below this share right are named under the axis instead of drawn
LIGHT, DARK = ("#333333", "#6b6b6b"), ("#d8dee4", "#9aa4af")  # colours of text, and of names of single points
RADIUS = 4  # of the space around a point, in pixels
PLACES = (  # of a label: its offset in points, and the side that faces its point
    *((7, 0, "left"), (-7, 0, "right"), (0, 9, "center"), (0, -9, "center"), (6, 9, "left"), (6, -9, "left")),
    *((-6, 9, "right"), (-6, -9, "right"), (0, 18, "center"), (0, -18, "center"), (9, 18, "left"), (16, -14, "left")),
)


def draw_frontier(plot: Plot, kind: str, dark: bool = False) -> bytes:
    """Return the plot as `svg` or `png`, with several points of a label as a line and single points as dots."""
    text, quiet = DARK if dark else LIGHT
    shown = [(label, [point for point in points if _value(point) >= 100 * LOWEST]) for label, points in plot.lines]
    hidden = [f"{label} {_value(points[0]):.0f} %" for label, points in plot.lines if _value(points[0]) < 100 * LOWEST]

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for _, points in shown:
            _draw_line(axes, points)
        axes.set_title(plot.title, fontsize=10, loc="left")
        axes.set(xlabel=plot.x + (f"\nnot drawn: {', '.join(hidden)}" if hidden else ""), ylabel=plot.y)
        axes.set_xscale("log", base=2)
        axes.margins(x=0.14, y=0.08)
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:.3g}")
        axes.minorticks_off()
        figure.canvas.draw()  # computes the layout, which the labels need
        _draw_labels(axes, [(label, points) for label, points in shown if points], quiet)

    colours = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), text)
    return render(paint, SIZE, kind, layout="constrained", style=colours | {"savefig.transparent": dark})


def _value(point: Point) -> float:
    return 100 * (point.estimate.value or 0.0)


def _draw_line(axes: Any, points: Sequence[Point]) -> None:
    line = len(points) > 1
    axes.errorbar(
        [point.x for point in points],
        [_value(point) for point in points],
        yerr=[100 * (point.estimate.error or 0.0) for point in points],
        color=COLOURS[1] if line else COLOURS[0],
        linewidth=2 if line else 0,
        elinewidth=0.8,
        marker="o",
        markersize=5 if line else 4,
        zorder=3 if line else 2,
    )


def _draw_labels(axes: Any, lines: Sequence[tuple[str, Sequence[Point]]], quiet: str) -> None:
    """Write each label at the place beside its last point that overlaps the least with points, lines and labels."""
    from matplotlib.transforms import Bbox

    spots = [axes.transData.transform([(point.x, _value(point)) for point in points]) for _, points in lines]
    between = [
        one + share * (two - one) for line in spots for one, two in pairwise(line) for share in (0.25, 0.5, 0.75)
    ]
    centres = [*(spot for line in spots for spot in line), *between]
    taken = [Bbox.from_extents(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in centres]
    frame = axes.get_window_extent()
    for label, points in sorted(lines, key=lambda line: -len(line[1])):
        bold: Any = {"color": COLOURS[1], "weight": "bold", "fontsize": 9}
        style = bold if len(points) > 1 else {"color": quiet, "fontsize": 7.5}
        spot = (points[-1].x, _value(points[-1]))
        note = axes.annotate(label, spot, (0, 0), textcoords="offset points", va="center", **style)
        boxes = {place: _move(note, place) for place in PLACES}
        inside = {place: box for place, box in boxes.items() if frame.x0 < box.x0 and box.x1 < frame.x1} or boxes
        best = min(inside, key=lambda place: sum(_overlap(boxes[place], other) for other in taken))
        taken.append(_move(note, best))


def _move(note: Any, place: tuple[int, int, str]) -> Any:
    """Put a label at a place and return its box."""
    note.xyann, side = place[:2], place[2]
    note.set_horizontalalignment(side)
    return note.get_window_extent()


def _overlap(first: Any, second: Any) -> float:
    both = type(first).intersection(first, second)
    return both.width * both.height if both is not None else 0.0
