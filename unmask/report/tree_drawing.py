"""A search tree as a picture: a column of boxes per search, with an arrow from parent to child.

A box shows what a candidate wrote, its total score and the part that this search added. The path to the answer is
coloured and pruned candidates are pale. A second decoder's trace of the same prompt is below, split at the searches.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from unmask.errors import UnmaskError
from unmask.report.gather import visible
from unmask.report.plots import render
from unmask.report.search_tree import Beside, Node, Tree, facts, heading, hundredths

MOST = 12  # searches in one picture
SIZE = 7.5  # of the font; all lengths are in points
CHAR, LINE = 0.64 * SIZE, 1.28 * SIZE  # of DejaVu Sans Mono, which comes with matplotlib, rounded to whole pixels
WIDE, NARROW, TALL = 34, 16, 9  # most and fewest characters per line, most lines per box
PAD, GAP, ARROW, EDGE = 4.0, 5.0, 38.0, 14.0
TOP = EDGE + 4.5 * LINE  # of the boxes, below the title and the headings
FONT: Any = {"size": SIZE, "va": "top", "family": "DejaVu Sans Mono"}
NOTES = (
    "total log p (added by this search) · ×n: drawn n times",
    "∎ end of text · beside: log p when written, and what the search did with it",
)


@dataclass(frozen=True)
class Look:
    """The colours of a box and the width of its lines."""

    face: str
    line: str
    ink: str
    width: float


CHOSEN = Look("#FFF3E0", "#D55E00", "#000000", 1.8)
KEPT = Look("#EAF3F9", "#0072B2", "#000000", 0.9)
PRUNED = Look("#FFFFFF", "#CFCFCF", "#7D7D7D", 0.6)
OTHER = Look("#F2F2F2", "#606060", "#000000", 0.9)
LEGEND = ((CHOSEN, "leads to the answer"), (KEPT, "kept"), (PRUNED, "pruned"))


@dataclass
class Box:
    """A headline and lines of text at a place of the picture."""

    head: str
    lines: list[str]
    look: Look
    x: float = 0.0
    y: float = 0.0  # its top; y grows downwards
    width: float = 0.0

    @property
    def height(self) -> float:
        return LINE * (len(self.lines) + 1) + 2 * PAD

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def tree_image(tree: Tree, kind: str) -> bytes:
    """Return the tree as `svg`, `png` or `pdf`."""
    if len(tree.searches) > MOST:
        raise UnmaskError(
            f"a picture must have at most {MOST} searches, got {len(tree.searches)} searches: use a larger block, no "
            "interval, or the tree as text"
        )
    columns = [[Box("prompt", _wrapped(tree.prompt, 30), OTHER)]]
    columns += [[_box(node) for node in search.nodes] for search in tree.searches]
    lane = _lane(tree.beside) if tree.beside else []
    width, height = _lay_out(tree, columns, lane)

    def paint(figure: Any) -> None:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.axis("off")
        _write(axes, EDGE, EDGE, visible(tree.title), weight="bold", size=SIZE + 1.5)
        for number, (search, column) in enumerate(zip(tree.searches, columns[1:], strict=True)):
            _write(axes, column[0].x, EDGE + 2 * LINE, heading(number, search), weight="bold")
            _write(axes, column[0].x, EDGE + 3 * LINE, search.counts, color="#606060")
        _draw_arrows(axes, tree, columns, lane)
        for box in (*(box for column in columns for box in column), *lane):
            _draw_box(axes, box)
        _draw_legend(axes, height)

    return render(paint, (width / 72, height / 72), kind)


def _box(node: Node) -> Box:
    return Box(facts(node), _wrapped(node.text, WIDE), CHOSEN if node.chosen else KEPT if node.kept else PRUNED)


def _lane(beside: Beside) -> list[Box]:
    written = zip(beside.texts, beside.logp, beside.met, strict=True)
    boxes = [Box(f"{hundredths(logp)}  {met}", _wrapped(text, WIDE), OTHER) for text, logp, met in written]
    return [Box("beside", textwrap.wrap(visible(beside.label), 30), OTHER), *boxes]


def _wrapped(text: str, wide: int) -> list[str]:
    """Wrap long lines, and leave out the middle of a text that is too tall."""
    lines: list[str] = []
    for line in text.expandtabs(2).strip("\n").split("\n"):
        lines += textwrap.wrap(visible(line), wide, replace_whitespace=False, drop_whitespace=False) or [""]
    if len(lines) > TALL:
        lines = [*lines[: TALL // 2], "…", *lines[-(TALL - TALL // 2 - 1) :]]
    return lines


def _lay_out(tree: Tree, columns: Sequence[list[Box]], lane: Sequence[Box]) -> tuple[float, float]:
    """Place all boxes, each column centred and the lane below; return the size of the picture."""
    tallest = max(sum(box.height + GAP for box in column) for column in columns)
    bottom = TOP + tallest + 2 * LINE
    heads = [0, *(max(len(heading(place, each)), len(each.counts)) for place, each in enumerate(tree.searches))]
    x = EDGE
    for place, column in enumerate(columns):
        below = list(lane[place : place + 1])
        letters = max(
            NARROW, heads[place], *(len(line) for box in (*column, *below) for line in (box.head, *box.lines))
        )
        y = TOP + (tallest - sum(box.height + GAP for box in column)) / 2
        for box in (*column, *below):
            box.x, box.y, box.width = x, y, letters * CHAR + 2 * PAD
            y += box.height + GAP
        for box in below:
            box.y = bottom
        x += letters * CHAR + 2 * PAD + ARROW
    bottom += max((box.height + LINE for box in lane), default=-LINE)
    width = max(x - ARROW, EDGE + max(map(len, NOTES)) * CHAR, EDGE + len(tree.title) * CHAR * 1.2)
    return width + EDGE, bottom + 4 * LINE + EDGE


def _draw_arrows(axes: Any, tree: Tree, columns: Sequence[list[Box]], lane: Sequence[Box]) -> None:
    pairs = [
        (above[node.parent or 0], box)
        for above, column, search in zip(columns[:-1], columns[1:], tree.searches, strict=True)
        for node, box in zip(search.nodes, column, strict=True)
    ]
    for look in (PRUNED, KEPT, CHOSEN):  # the path to the answer lies on top
        for parent, box in pairs:
            if box.look is look:
                _draw_arrow(axes, (parent.x + parent.width, parent.middle), (box.x, box.middle), look)
    for before, after in pairwise(lane):
        y = before.y + PAD + LINE
        _draw_arrow(axes, (before.x + before.width, y), (after.x, y), OTHER)


def _draw_arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], look: Look) -> None:
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path

    half, tip = (start[0] + end[0]) / 2, 4 + look.width
    points = [start, (half, start[1]), (half, end[1]), (end[0] - tip, end[1])]
    curve = Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    axes.add_patch(PathPatch(curve, fill=False, edgecolor=look.line, linewidth=look.width))
    head = [(end[0] - tip, end[1] - tip / 2.4), end, (end[0] - tip, end[1] + tip / 2.4)]
    axes.add_patch(Polygon(head, closed=True, facecolor=look.line, edgecolor="none"))


def _draw_box(axes: Any, box: Box) -> None:
    _draw_frame(axes, box.x, box.y, box.width, box.height, box.look)
    _write(axes, box.x + PAD, box.y + PAD, box.head, weight="bold", color=box.look.ink)
    for number, line in enumerate(box.lines, 1):
        _write(axes, box.x + PAD, box.y + PAD + number * LINE, line, color=box.look.ink)


def _draw_frame(axes: Any, x: float, y: float, width: float, height: float, look: Look) -> None:
    from matplotlib.patches import FancyBboxPatch

    style: Any = {"facecolor": look.face, "edgecolor": look.line, "linewidth": look.width}
    axes.add_patch(FancyBboxPatch((x, y), width, height, "round,pad=0,rounding_size=3", **style))


def _draw_legend(axes: Any, height: float) -> None:
    x, y = EDGE, height - EDGE - 3 * LINE
    for look, words in LEGEND:
        _draw_frame(axes, x, y + 1, 14.0, LINE - 2, look)
        _write(axes, x + 19, y, words, color="#404040")
        x += 19 + (len(words) + 3) * CHAR
    for number, words in enumerate(NOTES, 1):
        _write(axes, EDGE, y + number * LINE + 2, words, color="#404040")


def _write(axes: Any, x: float, y: float, text: str, **font: Any) -> None:
    axes.text(x, y, text, **FONT | font)
