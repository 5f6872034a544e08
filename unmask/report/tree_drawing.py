"""A search tree as a picture, and as text for a terminal: a column per search, an arrow from parent to child.

A box shows what a candidate wrote, its total score and how much of it this search added. The path to the answer is
coloured and pruned candidates are pale. Another decoder's trace of the same prompt can be shown beside it, split at the
search's blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unmask.errors import UnmaskError
from unmask.report import tree_layout as style
from unmask.report.figures import render
from unmask.report.labels import visible
from unmask.report.search_tree import Tree
from unmask.report.tree_layout import Box, Layout, Look, heads, hundredths, lay_out, scored

MOST = 12  # searches in one picture
FONT: Any = {"size": style.SIZE, "va": "top", "family": "DejaVu Sans Mono"}


def tree_image(tree: Tree, kind: str) -> bytes:
    if len(tree.searches) > MOST:
        raise UnmaskError(
            f"a picture of {len(tree.searches)} searches cannot be read, only up to {MOST}: "
            "choose a larger block, no interval, or the tree as text"
        )
    layout = lay_out(tree)
    return render(lambda figure: _paint(figure, layout), (layout.width / 72, layout.height / 72), kind)


def describe(tree: Tree, width: int = 100) -> str:
    """For a terminal: ● leads to the answer, ○ was kept, · was pruned."""
    lines = [_flat(tree.title), _flat(tree.prompt)]
    lines += [": ".join(heads(place, search)) for place, search in enumerate(tree.searches)]
    lines += ["", _survivors(tree), *_branches(tree, 0, None, "")]
    if tree.beside:
        lines += ["", f"beside it {_flat(tree.beside.label)} {style.MARKS[tree.beside.right]}".rstrip()]
        for text, logp, met in zip(tree.beside.texts, tree.beside.logp, tree.beside.met, strict=True):
            lines.append(f"  {met:<11} {hundredths(logp):>8}  {_flat(text)}")
    return "\n".join(line if len(line) <= width else line[: width - 1] + "…" for line in lines) + "\n"


def _survivors(tree: Tree) -> str:
    """Beams of one text search as one beam, at the price of several."""
    last = tree.searches[-1]
    return f"{last.distinct} distinct of {last.kept} rows survive the last search"


def _branches(tree: Tree, search: int, parent: int | None, indent: str) -> Iterator[str]:
    nodes = tree.searches[search].nodes if search < len(tree.searches) else ()
    children = [(place, node) for place, node in enumerate(nodes) if node.parent == parent]
    for place, node in children:
        final = place == children[-1][0]
        sign = "●" if node.chosen else "○" if node.kept else "·"
        count = f"×{node.count}" if node.count > 1 else ""
        facts = " ".join(word for word in (scored(node), count, style.MARKS[node.right]) if word)
        yield f"{indent}{'└' if final else '├'}{sign} {facts}  {_flat(node.text)}"
        yield from _branches(tree, search + 1, place, indent + ("   " if final else "│  "))


def _flat(text: str) -> str:
    return visible(text.strip("\n").replace("\n", "↵"))


def _paint(figure: Any, layout: Layout) -> None:
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, layout.width), ylim=(layout.height, 0))
    axes.axis("off")
    tree = layout.tree
    _write(axes, style.EDGE, style.EDGE, visible(tree.title), weight="bold", size=style.SIZE + 1.5)
    for number, (search, column) in enumerate(zip(tree.searches, layout.columns, strict=True)):
        head, counts = heads(number, search)
        _write(axes, column[0].x, style.EDGE + 2 * style.LINE, head, weight="bold")
        _write(axes, column[0].x, style.EDGE + 3 * style.LINE, counts, color="#606060")
    _arrows(axes, layout)
    for box in (layout.root, *(box for column in layout.columns for box in column), *layout.lane):
        _draw_box(axes, box)
    _legend(axes, layout)


def _arrows(axes: Any, layout: Layout) -> None:
    above = [layout.root]
    for column, search in zip(layout.columns, layout.tree.searches, strict=True):
        pairs = [(above[node.parent or 0], box) for node, box in zip(search.nodes, column, strict=True)]
        for look in (style.PRUNED, style.KEPT, style.CHOSEN):  # the path to the answer lies on top
            for parent, box in pairs:
                if box.look is look:
                    _arrow(axes, (parent.x + parent.width, parent.middle), (box.x, box.middle), look)
        above = column
    for before, after in zip(layout.lane[:-1], layout.lane[1:], strict=True):
        y = before.y + style.PAD + style.LINE
        _arrow(axes, (before.x + before.width, y), (after.x, y), style.OTHER)


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], look: Look) -> None:
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path

    half = (start[0] + end[0]) / 2
    tip = 4 + look.width
    points = [start, (half, start[1]), (half, end[1]), (end[0] - tip, end[1])]
    curve = Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    axes.add_patch(PathPatch(curve, fill=False, edgecolor=look.line, linewidth=look.width))
    head = [(end[0] - tip, end[1] - tip / 2.4), end, (end[0] - tip, end[1] + tip / 2.4)]
    axes.add_patch(Polygon(head, closed=True, facecolor=look.line, edgecolor="none"))


def _draw_box(axes: Any, box: Box) -> None:
    _frame(axes, box.x, box.y, box.width, box.height, box.look)
    y = box.y + style.PAD
    _write(axes, box.x + style.PAD, y, box.head, weight="bold", color=box.look.ink)
    _write(axes, box.x + box.width - style.PAD, y, box.note, color=box.look.ink, ha="right")
    for number, line in enumerate(box.lines, 1):
        _write(axes, box.x + style.PAD, y + number * style.LINE, line, color=box.look.ink)


def _frame(axes: Any, x: float, y: float, width: float, height: float, look: Look) -> None:
    from matplotlib.patches import FancyBboxPatch

    shape = "round,pad=0,rounding_size=3"
    axes.add_patch(
        FancyBboxPatch((x, y), width, height, shape, facecolor=look.face, edgecolor=look.line, linewidth=look.width)
    )


def _legend(axes: Any, layout: Layout) -> None:
    x, y = style.EDGE, layout.height - style.EDGE - 3 * style.LINE
    for look, words in style.LEGEND:
        _frame(axes, x, y + 1, 14.0, style.LINE - 2, look)
        _write(axes, x + 19, y, words, color="#404040")
        x += 19 + (len(words) + 3) * style.CHAR
    for number, words in enumerate(style.NOTES, 1):
        _write(axes, style.EDGE, y + number * style.LINE + 2, words, color="#404040")


def _write(axes: Any, x: float, y: float, text: str, **font: Any) -> None:
    if text:
        axes.text(x, y, text, **FONT | font)
