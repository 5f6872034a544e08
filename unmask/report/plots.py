"""Plots with matplotlib, in one style, without dates, the same bytes every time: accuracy against cost or length."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from unmask.errors import UnmaskError, nearest
from unmask.report.gather import Group, Quantity, Series, family, grouped, visible
from unmask.report.statistics import Difference, Estimate
from unmask.report.tables import count_range, pass_curves
from unmask.runs.files import write_whole

# Okabe and Ito's colours, with violet and sand instead of their two lightest: they can be distinguished with any colour
# vision, on white and inverted on a dark page.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#9467FF", "#A8894A", "#000000")
MARKS = "osD^vP*X"
KINDS = (".svg", ".png", ".pdf")
UNDATED: dict[str, Any] = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}
STYLE: Any = {
    "svg.hashsalt": "unmask",
    "text.parse_math": False,  # names are not formulas
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "font.size": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
}
# The paper's methods and ours have the same colour in every figure; all others take the colours that are left.
METHODS = {
    "order-token search": 0,
    "ots": 0,
    "order-token-search": 0,
    "low-confidence": 1,
    "random": 2,
    "ar": 3,
    "left-to-right": 3,
    "search": 4,
    "adaptive": 5,
}
FORWARD_PASSES = "forward passes per problem"
INTERVAL = 1.96  # standard errors to either side of a 95 % interval
SPREAD = 0.7  # share of a row's height in a forest plot that its marks use
LOWEST = 0.4  # points of a frontier below this share right are named under the axis instead of drawn
INK, QUIET = "#333333", "#6b6b6b"  # colours of a frontier's text, and of its names of single points
RADIUS = 4  # of the space around a point, in pixels
PLACES = (  # of a label: its offset in points, and the side that faces its point
    *((7, 0, "left"), (-7, 0, "right"), (0, 9, "center"), (0, -9, "center"), (6, 9, "left"), (6, -9, "left")),
    *((-6, 9, "right"), (-6, -9, "right"), (0, 18, "center"), (0, -18, "center"), (9, 18, "left"), (16, -14, "left")),
)


def render(
    paint: Callable[[Any], None],
    size: tuple[float, float],
    kind: str,
    layout: str | None = None,
    style: Mapping[str, Any] = MappingProxyType({}),
) -> bytes:
    """Return a figure of this size in inches, filled by `paint`, as svg, png or pdf; user styles have no effect."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
        from matplotlib.style import context
    except ImportError:
        raise UnmaskError("plots need matplotlib: pip install 'unmask[plot]'") from None
    except ValueError as error:  # from a backend in the environment, which is not used
        backend = os.environ.get("MPLBACKEND")
        raise UnmaskError(f"MPLBACKEND must name a backend of matplotlib, got {backend!r} ({error})") from None
    with context("default"), matplotlib.rc_context(STYLE | dict(style)):
        figure = Figure(figsize=size, layout=layout)  # pyright: ignore[reportArgumentType]
        paint(figure)
        out = io.BytesIO()
        figure.savefig(out, format=kind, dpi=150, metadata=UNDATED[kind])
        return out.getvalue()


def looks(labels: Sequence[str]) -> list[tuple[str, str]]:
    """Return the colour and the marker of each series; variants of a method share its colour."""
    known = [_method(label) for label in labels]
    spare = [place for place in range(len(COLOURS)) if place not in known] or list(range(len(COLOURS)))
    others = iter(range(len(labels)))
    places = [spare[next(others) % len(spare)] if place is None else place for place in known]
    return [(COLOURS[place], MARKS[number % len(MARKS)]) for number, place in enumerate(places)]


def _method(label: str) -> int | None:
    """Return the colour of the longest method name that a label begins with."""
    word = label.lower()
    begun = [name for name in METHODS if re.match(rf"{re.escape(name)}(?![a-z-])", word)]
    return METHODS[max(begun, key=len)] if begun else None


def points_with_errors(
    axes: Any, look: tuple[str, str], label: str, xs: list[float], ys: list[float], **style: Any
) -> None:
    """Draw a series in its colour and marker; `xerr` or `yerr` are its errors."""
    axes.errorbar(
        xs,
        ys,
        label=label,
        color=look[0],
        marker=look[1],
        markersize=5,
        **{"elinewidth": 0.8, "linestyle": "none", "capsize": 2} | style,
    )


def kind_of(path: str | PathLike[str]) -> str:
    """Return `svg`, `png` or `pdf`, by the name of a file."""
    suffix = Path(path).suffix.lower()
    if suffix not in KINDS:
        raise UnmaskError(f"unknown kind of picture {str(path)!r}: {nearest(suffix, KINDS)}")
    return suffix[1:]


def keep(content: bytes, path: str | PathLike[str], folder: bool = False) -> None:
    """Write a whole file or nothing; with `folder`, also create its folder."""
    try:
        if folder:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(Path(path), content)
    except OSError as error:
        raise UnmaskError(f"{str(path)!r} cannot be written: {error.strerror}") from None


@dataclass(frozen=True)
class Point:
    """An estimate at a place of the x axis."""

    x: float
    estimate: Estimate


Curve = tuple[str, tuple[Point, ...]]  # a label and its points


@dataclass(frozen=True)
class Plot:
    """Lines of points with their axes, as a plain value."""

    name: str  # name of the file
    title: str
    x: str  # name of the x axis
    lines: tuple[Curve, ...]
    y: str = "right, %  (± standard error)"
    level: tuple[str, float] | None = None  # label and height of a horizontal line
    zero: bool = False  # the y axis starts at zero
    shares: bool = True  # values are shares, shown in percent
    ticks: tuple[str, ...] = ()  # names of x = 0, 1, 2 …; without them the axis is logarithmic
    limits: tuple[float, float] | None = None  # of the y axis, if several panels share it


def report_plots(groups: Sequence[Group]) -> list[Plot]:
    """Return every plot of a report that has something to show."""
    names = file_names(groups)
    plots = [plot for name, group in zip(names, groups, strict=True) for plot in _group_plots(group, name)]
    return one_scale([plot for plot in plots if plot.lines])


def one_scale(plots: Sequence[Plot]) -> list[Plot]:
    """Return plots in which y axes with the same meaning have the same limits."""
    axes = grouped(plots, lambda plot: (plot.y, plot.shares))
    limits = {axis: _limits(panels) for axis, panels in axes.items() if len(panels) > 1}
    return [replace(plot, limits=limits.get((plot.y, plot.shares))) for plot in plots]


def _limits(panels: Sequence[Plot]) -> tuple[float, float]:
    """Return the range of all error bars with a margin, in the units of the axis."""
    estimates = [point.estimate for plot in panels for _, points in plot.lines for point in points]
    ends = [(each.value or 0.0) + sign * (each.error or 0.0) for each in estimates for sign in (-1, 1)]
    ends += [plot.level[1] for plot in panels if plot.level]
    margin, times = 0.05 * (max(ends) - min(ends)), 100 if panels[0].shares else 1
    return times * (min(ends) - margin), times * (max(ends) + margin)


def file_names(groups: Sequence[Group]) -> list[str]:
    """Name files by task, and by model if there are several; number them if two names are the same."""
    several = len({group.model for group in groups}) > 1
    plain = [_plain(f"{group.model}-{group.name}" if several else group.name) for group in groups]
    return [name if plain.count(name) == 1 else f"{name}-{place}" for place, name in enumerate(plain, 1)]


def _plain(name: str) -> str:
    return "-".join(re.findall(r"[a-z0-9.]+", name.lower()))[-60:].strip("-.") or "plot"


def _group_plots(group: Group, name: str) -> Iterator[Plot]:
    graded = [series for series in group.series if any(result.accuracy.n for result in series.results.values())]
    title = f"{group.model} · {group.name}"

    def plot(kind: str, title: str, x: str, lines: Iterable[Curve]) -> Plot:
        lines = tuple(lines)
        return Plot(f"{name}-{_decoders(label for label, _ in lines)}-{kind}", title, x, lines)

    if len(group.lengths) > 1:
        yield plot("forward-passes", title, FORWARD_PASSES, ((each.label, points_by_cost(each)) for each in graded))
        yield plot("length", title, "length", ((each.label, points_by_length(each)) for each in graded))
    elif len(graded) > 1:
        yield plot("forward-passes", f"{title}, L={group.lengths[0]}", FORWARD_PASSES, _sweeps(graded))
    for length in group.lengths:
        yield plot(f"pass-{length}", f"{title}, pass@k, L={length}", "k", curve_lines(pass_curves(group, length)))


def _decoders(names: Iterable[str]) -> str:
    """Return up to three names of decoders for the name of a file, or their number."""
    plain = sorted({_plain(name.rpartition(" × ")[2].partition("(")[0]) for name in names})
    return "-".join(plain) if len(plain) <= 3 else f"{len(plain)}-decoders"


def _sweeps(swept: Iterable[Series]) -> Iterator[Curve]:
    """Yield a line for each decoder at a single length; settings that differ only in whole numbers are joined."""
    for name, members in grouped(swept, _sweep).items():
        label = name if len(members) > 1 else members[0].label
        yield label, tuple(point for series in members for point in points_by_cost(series))


def _sweep(series: Series) -> str:
    if series.samples > 1:
        return f"majority of stored × {series.label.partition(' × ')[2]}"
    return family(series.label)


def points_by_cost(series: Series) -> tuple[Point, ...]:
    return _known((result.cost["forward_passes"], result.accuracy) for result in series.results.values())


def points_by_length(series: Series, quantity: Quantity = "right") -> tuple[Point, ...]:
    return _known((length, result.estimate(quantity)) for length, result in series.results.items())


def _known(pairs: Iterable[tuple[int | float, Estimate]]) -> tuple[Point, ...]:
    return tuple(Point(float(x), estimate) for x, estimate in pairs if estimate.value is not None and x > 0)


def curve_lines(curves: Mapping[str, Mapping[int, Estimate]]) -> tuple[Curve, ...]:
    return tuple((label, _known(curve.items())) for label, curve in curves.items())


def draw(plot: Plot, kind: str) -> bytes:
    """Return a plot as `svg`, `png` or `pdf`."""

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        times = 100 if plot.shares else 1
        styles = looks([label for label, _ in plot.lines])
        for place, (label, points) in enumerate(plot.lines):
            shift = place - (len(plot.lines) - 1) / 2  # points at named ticks stand side by side
            points_with_errors(
                axes,
                styles[place],
                visible(label),
                [point.x + 0.14 * shift if plot.ticks else point.x for point in points],
                [times * (point.estimate.value or 0.0) for point in points],
                yerr=[times * (point.estimate.error or 0.0) for point in points],
                linewidth=1.3,
                linestyle="none" if plot.ticks else "-",
            )
        if plot.level is not None:
            label, height = plot.level
            axes.axhline(times * height, label=visible(label), color="#666666", linestyle="--", linewidth=1)
        _scale(axes, plot)
        figure.legend(loc="outside lower left", ncols=1 + (max(len(label) for label, _ in plot.lines) < 36))

    return render(paint, (6.4, 3.8 + 0.14 * len(plot.lines)), kind, layout="constrained")


def _scale(axes: Any, plot: Plot) -> None:
    counts = [point.estimate.n for _, points in plot.lines for point in points]
    n = f"n={count_range(counts)}" if counts else ""
    axes.set_title(visible(", ".join(filter(None, (plot.title, n)))), fontsize=10, loc="left")
    axes.set(xlabel=plot.x if plot.ticks else f"{plot.x}, logarithmic", ylabel=plot.y)
    _x_ticks(axes, plot)
    low, high = plot.limits or axes.get_ylim()
    axes.set_ylim(0 if plot.zero else max(low, -2), max(5, min(high, 102)) if plot.shares else high)


def _x_ticks(axes: Any, plot: Plot) -> None:
    if plot.ticks:
        axes.set_xticks(range(len(plot.ticks)), plot.ticks)
        axes.set_xlim(-0.6, len(plot.ticks) - 0.4)
        axes.grid(axis="x", visible=False)
        return
    axes.set_xscale("log", base=2)
    places = sorted({point.x for _, points in plot.lines for point in points})
    ticks: list[float] = []
    for x in places:
        if not ticks or x >= 1.15 * ticks[-1]:
            ticks.append(x)
    axes.set_xticks(ticks, list(map(_rounded, ticks)))
    axes.minorticks_off()
    if len(places) == 1:
        axes.set_xlim(places[0] / 2, places[0] * 2)


def _rounded(x: float) -> str:
    """Round to whole numbers, as in the tables, and small numbers to three digits."""
    return f"{x:.3g}" if x < 10 else f"{x:.0f}"


def describe(plot: Plot) -> str:
    """Describe a plot for readers who cannot see it."""
    lines = []
    for label, points in plot.lines:
        figures = ", ".join(f"{100 * (point.estimate.value or 0):.1f} % at {_rounded(point.x)}" for point in points)
        lines.append(f"{label}: {figures}")
    return f"{plot.title}, accuracy against {plot.x}. " + "; ".join(lines)


def forest(rows: Mapping[str, Mapping[str, Difference]], kind: str, title: str, axis: str) -> bytes:
    """Return differences with their intervals: a row per rival, a mark per series and a line at zero."""
    series = list(dict.fromkeys(name for row in rows.values() for name in row))

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        axes.axvline(0, color="#808080", linewidth=1, linestyle="--")
        styles = looks(series)
        for place, name in enumerate(series):
            marks = {height: row[name] for height, row in enumerate(rows.values()) if name in row}
            shift = SPREAD * ((place + 0.5) / len(series) - 0.5)
            points_with_errors(
                axes,
                styles[place],
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


def draw_frontier(plot: Plot, kind: str) -> bytes:
    """Return the plot as `svg` or `png`, with several points of a label as a line and single points as dots."""
    shown = [(label, [point for point in points if _value(point) >= 100 * LOWEST]) for label, points in plot.lines]
    hidden = [f"{label} {_value(points[0]):.0f} %" for label, points in plot.lines if _value(points[0]) < 100 * LOWEST]

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for _, points in shown:
            several = len(points) > 1
            points_with_errors(
                axes,
                (COLOURS[1] if several else COLOURS[0], "o"),
                "",
                [point.x for point in points],
                [_value(point) for point in points],
                yerr=[100 * (point.estimate.error or 0.0) for point in points],
                linestyle="-" if several else "none",
                linewidth=2,
                capsize=0,
            )
        axes.set_title(plot.title, fontsize=10, loc="left")
        axes.set(xlabel=plot.x + (f"\nnot drawn: {', '.join(hidden)}" if hidden else ""), ylabel=plot.y)
        axes.set_xscale("log", base=2)
        axes.margins(x=0.14, y=0.08)
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:.3g}")
        axes.minorticks_off()
        figure.canvas.draw()  # computes the layout, which the labels need
        _draw_labels(axes, [(label, points) for label, points in shown if points])

    colours: Any = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK)
    return render(paint, (7.2, 4.4), kind, layout="constrained", style=colours)


def _value(point: Point) -> float:
    return 100 * (point.estimate.value or 0.0)


def _draw_labels(axes: Any, lines: Sequence[tuple[str, Sequence[Point]]]) -> None:
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
        style = bold if len(points) > 1 else {"color": QUIET, "fontsize": 7.5}
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
