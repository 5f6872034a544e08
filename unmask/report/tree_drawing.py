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
WIDE, TALL = 34, 9  # most characters per line, most lines per box
PAD, GAP, ARROW, EDGE = 4.0, 5.0, 46.0, 14.0
TOP = EDGE + 5 * LINE  # of the boxes, below the title and the headings
FONT: Any = {"size": SIZE, "va": "top", "family": "DejaVu Sans Mono", "linespacing": 1.1}
NOTES = (
    "total log p (added by this search) · ×n: drawn n times\n"
    "∎ end of text · beside: log p when written, and what the search did with it"
)
# The looks of boxes, as matplotlib names their parts.
CHOSEN = {"facecolor": "#FFF3E0", "edgecolor": "#D55E00", "linewidth": 1.8}
KEPT = {"facecolor": "#EAF3F9", "edgecolor": "#0072B2", "linewidth": 0.9}
PRUNED = {"facecolor": "#FFFFFF", "edgecolor": "#CFCFCF", "linewidth": 0.6}
OTHER = {"facecolor": "#F2F2F2", "edgecolor": "#606060", "linewidth": 0.9}
LEGEND = {"leads to the answer": CHOSEN, "kept": KEPT, "pruned": PRUNED}


@dataclass
class Box:
    """Lines of text at a place of the picture."""

    text: str
    look: dict[str, Any]
    x: float = 0.0
    y: float = 0.0  # its top; y grows downwards

    @property
    def height(self) -> float:
        return LINE * (1 + self.text.count("\n")) + 2 * PAD + GAP


def tree_image(tree: Tree, kind: str) -> bytes:
    """Return the tree as `svg`, `png` or `pdf`."""
    if len(tree.searches) > MOST:
        raise UnmaskError(
            f"a picture must have at most {MOST} searches, got {len(tree.searches)} searches: use a larger block, no "
            "interval, or the tree as text"
        )
    columns = [[Box("prompt\n" + _wrapped(tree.prompt), OTHER)]]
    columns += [[_box(node) for node in search.nodes] for search in tree.searches]
    lane = _lane(tree.beside) if tree.beside else []
    heads = ["", *(f"{heading(place, each)}\n{each.counts}" for place, each in enumerate(tree.searches))]
    width, height = _lay_out(heads, columns, lane)
    width = max(width, CHAR * max(map(len, NOTES.split("\n"))), 1.2 * CHAR * len(tree.title)) + 2 * EDGE

    def paint(figure: Any) -> None:
        from matplotlib.patches import Patch

        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.axis("off")
        axes.text(EDGE, EDGE, visible(tree.title), **FONT | {"weight": "bold", "size": SIZE + 1.5})
        for head, column in zip(heads, columns, strict=True):
            axes.text(column[0].x, EDGE + 2 * LINE, head, weight="bold", **FONT)
        _draw_boxes(axes, tree, columns, lane)
        axes.text(EDGE, height - EDGE - 4 * LINE, NOTES, color="#404040", **FONT)
        handles = [Patch(label=label, **look) for label, look in LEGEND.items()]
        figure.legend(handles=handles, loc="lower left", ncols=len(handles), fontsize=SIZE)

    return render(paint, (width / 72, height / 72), kind)


def _box(node: Node) -> Box:
    look = CHOSEN if node.chosen else KEPT if node.kept else PRUNED
    return Box(f"{facts(node)}\n{_wrapped(node.text)}", look)


def _lane(beside: Beside) -> list[Box]:
    boxes = [Box(f"{hundredths(logp)}  {met}\n{_wrapped(text)}", OTHER) for text, logp, met in beside.parts]
    return [Box("beside\n" + _wrapped(beside.label), OTHER), *boxes]


def _wrapped(text: str) -> str:
    """Wrap long lines, and leave out the middle of a text that is too tall."""
    lines: list[str] = []
    for line in text.expandtabs(2).strip("\n").split("\n"):
        lines += textwrap.wrap(visible(line), WIDE, replace_whitespace=False, drop_whitespace=False) or [""]
    if len(lines) > TALL:
        lines = [*lines[: TALL // 2], "…", *lines[-(TALL - TALL // 2 - 1) :]]
    return "\n".join(lines)


def _lay_out(heads: Sequence[str], columns: Sequence[list[Box]], lane: Sequence[Box]) -> tuple[float, float]:
    """Place all boxes, each column centred and the lane below; return the size that the picture needs."""
    tallest = max(sum(box.height for box in column) for column in columns)
    bottom, x = TOP + tallest + LINE, EDGE
    for place, column in enumerate(columns):
        y = TOP + (tallest - sum(box.height for box in column)) / 2
        for box in column:
            box.x, box.y, y = x, y, y + box.height
        below = lane[place : place + 1]
        for box in below:
            box.x, box.y = x, bottom
        texts = (heads[place], *(box.text for box in (*column, *below)))
        x += CHAR * max(len(line) for text in texts for line in text.split("\n")) + ARROW
    return x - ARROW, bottom + max((box.height for box in lane), default=0.0) + 5 * LINE + EDGE


def _draw_boxes(axes: Any, tree: Tree, columns: Sequence[list[Box]], lane: Sequence[Box]) -> None:
    """Draw the boxes and the arrows between them, of which the path to the answer lies on top."""
    drawn = [[_draw_box(axes, box) for box in column] for column in columns]
    for place, search in enumerate(tree.searches):
        for node, box, text in zip(search.nodes, columns[place + 1], drawn[place + 1], strict=True):
            _draw_arrow(axes, drawn[place][node.parent or 0], text, box.look)
    for before, after in pairwise([_draw_box(axes, box) for box in lane]):
        _draw_arrow(axes, before, after, OTHER)


def _draw_box(axes: Any, box: Box) -> Any:
    frame = {**box.look, "boxstyle": f"round,pad={PAD / SIZE},rounding_size=0.3"}
    colour = "#7D7D7D" if box.look is PRUNED else "#000000"
    return axes.text(box.x + PAD, box.y + PAD, box.text, color=colour, bbox=frame, **FONT)


def _draw_arrow(axes: Any, parent: Any, child: Any, look: dict[str, Any]) -> None:
    """Draw an arrow from the right edge of one text to the left edge of a second."""
    style = {"arrowstyle": "-|>", "color": look["edgecolor"], "linewidth": look["linewidth"]}
    style |= {"shrinkA": PAD, "shrinkB": PAD, "connectionstyle": "arc3"}
    ends: Any = {"xy": (0, 0.5), "xycoords": child, "xytext": (1, 0.5), "textcoords": parent}
    axes.annotate("", **ends, arrowprops=style, zorder=look["linewidth"])
