"""Accuracy against cost with every point named beside it: what one gets for what one pays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from unmask.report.plots import COLOURS, Plot, Point, render

SIZE = (7.2, 4.4)  # inches
LOWEST = 0.4  # points below this share right are named under the axis instead of drawn
LIGHT, DARK = ("#333333", "#6b6b6b"), ("#d8dee4", "#9aa4af")  # text, and names of single points
WIDTH, HEIGHT = 3.75, 8.0  # of a character in points, at the labels' size
PLACES = (
    *((7, 0, "left"), (-7, 0, "right"), (0, 9, "center"), (0, -9, "center"), (6, 9, "left"), (6, -9, "left")),
    *((-6, 9, "right"), (-6, -9, "right"), (0, 18, "center"), (0, -18, "center"), (9, 18, "left"), (16, -14, "left")),
)

Box = tuple[float, float, float, float]


def draw_frontier(plot: Plot, kind: str, dark: bool = False) -> bytes:
    """As `svg` or `png`. Lines of several points are drawn as lines, single points as dots."""
    text, quiet = DARK if dark else LIGHT
    shown = [(label, [point for point in points if _value(point) >= 100 * LOWEST]) for label, points in plot.lines]
    hidden = [f"{label} {_value(points[0]):.0f} %" for label, points in plot.lines if _value(points[0]) < 100 * LOWEST]

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for _, points in shown:
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
        _scale(axes, plot, hidden)
        figure.canvas.draw()
        for label, point, (dx, dy, side) in _named(axes, shown):
            bold = len(dict(shown)[label]) > 1
            style: Any = {"color": COLOURS[1], "weight": "bold"} if bold else {"color": quiet}
            axes.annotate(
                label,
                (point.x, _value(point)),
                (dx, dy),
                textcoords="offset points",
                ha=side,
                va="center",
                fontsize=9 if bold else 7.5,
                **style,
            )

    colours = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), text)
    return render(paint, SIZE, kind, layout="constrained", style=colours | {"savefig.transparent": dark})


def _value(point: Point) -> float:
    return 100 * (point.estimate.value or 0.0)


def _scale(axes: Any, plot: Plot, hidden: Sequence[str]) -> None:
    axes.set_title(plot.title, fontsize=10, loc="left")
    axes.set(xlabel=plot.x + (f"\nnot drawn: {', '.join(hidden)}" if hidden else ""), ylabel=plot.y)
    axes.set_xscale("log", base=2)
    axes.margins(x=0.14, y=0.08)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:.3g}")
    axes.minorticks_off()


def _named(axes: Any, lines: Sequence[tuple[str, Sequence[Point]]]) -> Iterator[tuple[str, Point, Any]]:
    """Each label at the first place beside its point that is free, or at the freest."""
    scale = 72 / axes.figure.dpi
    frame = axes.get_window_extent()
    spots = [[tuple(axes.transData.transform((point.x, _value(point))) * scale) for point in line] for _, line in lines]
    taken = [_dot(*spot) for line in spots for spot in (*line, *_between(line))]
    for (label, points), line in sorted(zip(lines, spots, strict=True), key=lambda each: -len(each[1])):
        if points:
            boxes = [(place, _box(line[-1], place, len(label))) for place in PLACES]
            inside = [(place, box) for place, box in boxes if frame.x0 * scale < box[0] and box[2] < frame.x1 * scale]
            place, box = min(inside or boxes, key=lambda each: sum(_overlap(each[1], other) for other in taken))
            taken.append(box)
            yield label, points[-1], place


def _between(line: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Spots along a line, so that no label crosses it."""
    for (x, y), (after, higher) in pairwise(line):
        yield from ((x + share * (after - x), y + share * (higher - y)) for share in (0.25, 0.5, 0.75))


def _dot(x: float, y: float) -> Box:
    return x - 4, y - 4, x + 4, y + 4


def _box(spot: tuple[float, float], place: tuple[int, int, str], characters: int) -> Box:
    (x, y), (dx, dy, side), width = spot, place, WIDTH * characters
    left = x + dx - {"left": 0.0, "right": width, "center": width / 2}[side]
    return left, y + dy - HEIGHT / 2, left + width, y + dy + HEIGHT / 2


def _overlap(first: Box, second: Box) -> float:
    """The area that both cover."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    return max(width, 0.0) * max(height, 0.0)
