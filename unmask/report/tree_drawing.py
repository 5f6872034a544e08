"""Where the boxes of a search tree go: a column per search, children centred on their parents. A search tree as a picture, and as text for a terminal: a column per search, an arrow from parent to child.

A box shows what a candidate wrote, its total score and how much of it this search added. The path to the answer is
coloured and pruned candidates are pale. Another decoder's trace of the same prompt can be shown beside it, split at the
search's blocks."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from unmask.errors import UnmaskError
from unmask.report.gather import visible
from unmask.report.plots import render
from unmask.report.search_tree import Beside, Node, SearchStep, Tree

SIZE = 7.5  # of the font; all lengths are in points
CHAR, LINE = 0.64 * SIZE, 1.28 * SIZE  # of DejaVu Sans Mono, which comes with matplotlib, rounded to whole pixels
WIDE, NARROW, TALL = 34, 16, 9  # the most and fewest letters per line, the most lines per box
PAD, GAP, ARROW, EDGE = 4.0, 5.0, 38.0, 14.0
MARKS = {True: "✓", False: "✗", None: ""}


@dataclass(frozen=True)
class Look:
    face: str
    line: str
    ink: str
    width: float


CHOSEN = Look("#FFF3E0", "#D55E00", "#000000", 1.8)
KEPT = Look("#EAF3F9", "#0072B2", "#000000", 0.9)
PRUNED = Look("#FFFFFF", "#CFCFCF", "#7D7D7D", 0.6)
OTHER = Look("#F2F2F2", "#606060", "#000000", 0.9)
NOTES = (
    "total log p (added by this search) · ×n: drawn n times",
    "∎ end of text · beside: log p when written, and what the search did with it",
)
LEGEND = ((CHOSEN, "leads to the answer"), (KEPT, "kept"), (PRUNED, "pruned"))


@dataclass
class Box:
    head: str
    note: str  # at the right of the head
    lines: list[str]
    look: Look
    x: float = 0.0
    y: float = 0.0  # its top; y grows downwards
    width: float = 0.0

    @property
    def height(self) -> float:
        return LINE * (len(self.lines) + bool(self.head)) + 2 * PAD

    @property
    def middle(self) -> float:
        return self.y + self.height / 2

    @property
    def letters(self) -> int:
        return max(len(line) for line in [f"{self.head}  {self.note}", *self.lines])


@dataclass(frozen=True)
class Layout:
    """All boxes with their places."""

    tree: Tree
    root: Box
    columns: list[list[Box]]
    lane: list[Box]  # the other decoder, below the tree
    width: float
    height: float


def heads(place: int, search: SearchStep) -> tuple[str, str]:
    counts = f"{search.candidates} drawn, {len(search.nodes)} distinct, {search.kept} kept"
    return f"search {place + 1}, step {search.step}", counts


def hundredths(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _wrapped(text: str, wide: int) -> list[str]:
    """Line ends are kept, long lines are wrapped, and the middle of a text that is too tall is left out."""
    lines: list[str] = []
    for line in text.expandtabs(2).strip("\n").split("\n"):
        lines += textwrap.wrap(visible(line), wide, replace_whitespace=False, drop_whitespace=False) or [""]
    if len(lines) > TALL:
        lines = [*lines[: TALL // 2], "…", *lines[-(TALL - TALL // 2 - 1) :]]
    return lines


def _box(node: Node) -> Box:
    look = CHOSEN if node.chosen else KEPT if node.kept else PRUNED
    count = f"×{node.count}" if node.count > 1 else ""
    note = " ".join(word for word in (count, MARKS[node.right]) if word)
    return Box(scored(node), note, _wrapped(node.text, WIDE), look)


def scored(node: Node) -> str:
    """The total, and what this search added unless that is all of it."""
    return hundredths(node.score) + (f" ({hundredths(node.gain)})" if node.parent is not None else "")


def lay_out(tree: Tree) -> Layout:
    root = Box("prompt", "", _wrapped(tree.prompt, 30), OTHER)
    columns = [[_box(node) for node in search.nodes] for search in tree.searches]
    lane = _lane(tree.beside) if tree.beside else []
    x = _column(EDGE, [root, *lane[:1]], NARROW)
    for place, (column, search) in enumerate(zip(columns, tree.searches, strict=True)):
        x = _column(x + ARROW, [*column, *lane[place + 1 : place + 2]], max(map(len, heads(place, search))))
    x = max(x, EDGE + max(map(len, NOTES)) * CHAR, EDGE + len(tree.title) * CHAR * 1.2)
    top = EDGE + 4.5 * LINE
    height = max(sum(box.height + GAP for box in column) for column in [[root], *columns])
    _stack([root], [top + height / 2 - root.height / 2], top, height)
    above = [root]
    for column, search in zip(columns, tree.searches, strict=True):
        _stack(column, _wishes(column, [above[node.parent or 0] for node in search.nodes]), top, height)
        above = column
    kept = [box.middle for box in columns[0] if box.look is not PRUNED]  # the prompt is centred on them
    root.y = max(top, sum(kept) / len(kept) - root.height / 2)
    bottom = top + height + 2 * LINE
    for box in lane:
        box.y = bottom
    bottom += max((box.height + LINE for box in lane), default=-LINE)
    return Layout(tree, root, columns, lane, x + EDGE, bottom + 4 * LINE + EDGE)


def _lane(beside: Beside) -> list[Box]:
    head = Box("beside", MARKS[beside.right], textwrap.wrap(visible(beside.label), 30), OTHER)
    written = zip(beside.texts, beside.logp, beside.met, strict=True)
    return [head, *(Box(hundredths(logp), met, _wrapped(text, WIDE), OTHER) for text, logp, met in written)]


def _column(x: float, boxes: Sequence[Box], letters: int) -> float:
    """Makes all boxes as wide as the widest, and at least this many letters; returns the column's right edge."""
    width = max(letters, max(box.letters for box in boxes)) * CHAR + 2 * PAD
    for box in boxes:
        box.x, box.width = x, width
    return x + width


def _wishes(column: Sequence[Box], above: Sequence[Box]) -> list[float]:
    """The preferred top of each box: siblings together, centred on their parent."""
    wishes = []
    for parent in above:
        siblings = [box for box, other in zip(column, above, strict=True) if other is parent]
        before = len([other for other in above[: len(wishes)] if other is parent])
        tall = sum(box.height + GAP for box in siblings) - GAP
        wishes.append(parent.middle - tall / 2 + sum(box.height + GAP for box in siblings[:before]))
    return wishes


def _stack(column: Sequence[Box], wishes: Sequence[float], top: float, height: float) -> None:
    """As near to their wishes as the order, the gaps and the page allow."""
    floor = top
    for box, wish in zip(column, wishes, strict=True):
        box.y = max(wish, floor)
        floor = box.y + box.height + GAP
    ceiling = top + height
    for box in reversed(column):
        box.y = min(box.y, ceiling - GAP - box.height)
        ceiling = box.y


MOST = 12  # searches in one picture
FONT: Any = {"size": SIZE, "va": "top", "family": "DejaVu Sans Mono"}


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
        lines += ["", f"beside it {_flat(tree.beside.label)} {MARKS[tree.beside.right]}".rstrip()]
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
        facts = " ".join(word for word in (scored(node), count, MARKS[node.right]) if word)
        yield f"{indent}{'└' if final else '├'}{sign} {facts}  {_flat(node.text)}"
        yield from _branches(tree, search + 1, place, indent + ("   " if final else "│  "))


def _flat(text: str) -> str:
    return visible(text.strip("\n").replace("\n", "↵"))


def _paint(figure: Any, layout: Layout) -> None:
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, layout.width), ylim=(layout.height, 0))
    axes.axis("off")
    tree = layout.tree
    _write(axes, EDGE, EDGE, visible(tree.title), weight="bold", size=SIZE + 1.5)
    for number, (search, column) in enumerate(zip(tree.searches, layout.columns, strict=True)):
        head, counts = heads(number, search)
        _write(axes, column[0].x, EDGE + 2 * LINE, head, weight="bold")
        _write(axes, column[0].x, EDGE + 3 * LINE, counts, color="#606060")
    _arrows(axes, layout)
    for box in (layout.root, *(box for column in layout.columns for box in column), *layout.lane):
        _draw_box(axes, box)
    _legend(axes, layout)


def _arrows(axes: Any, layout: Layout) -> None:
    above = [layout.root]
    for column, search in zip(layout.columns, layout.tree.searches, strict=True):
        pairs = [(above[node.parent or 0], box) for node, box in zip(search.nodes, column, strict=True)]
        for look in (PRUNED, KEPT, CHOSEN):  # the path to the answer lies on top
            for parent, box in pairs:
                if box.look is look:
                    _arrow(axes, (parent.x + parent.width, parent.middle), (box.x, box.middle), look)
        above = column
    for before, after in zip(layout.lane[:-1], layout.lane[1:], strict=True):
        y = before.y + PAD + LINE
        _arrow(axes, (before.x + before.width, y), (after.x, y), OTHER)


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
    y = box.y + PAD
    _write(axes, box.x + PAD, y, box.head, weight="bold", color=box.look.ink)
    _write(axes, box.x + box.width - PAD, y, box.note, color=box.look.ink, ha="right")
    for number, line in enumerate(box.lines, 1):
        _write(axes, box.x + PAD, y + number * LINE, line, color=box.look.ink)


def _frame(axes: Any, x: float, y: float, width: float, height: float, look: Look) -> None:
    from matplotlib.patches import FancyBboxPatch

    shape = "round,pad=0,rounding_size=3"
    axes.add_patch(
        FancyBboxPatch((x, y), width, height, shape, facecolor=look.face, edgecolor=look.line, linewidth=look.width)
    )


def _legend(axes: Any, layout: Layout) -> None:
    x, y = EDGE, layout.height - EDGE - 3 * LINE
    for look, words in LEGEND:
        _frame(axes, x, y + 1, 14.0, LINE - 2, look)
        _write(axes, x + 19, y, words, color="#404040")
        x += 19 + (len(words) + 3) * CHAR
    for number, words in enumerate(NOTES, 1):
        _write(axes, EDGE, y + number * LINE + 2, words, color="#404040")


def _write(axes: Any, x: float, y: float, text: str, **font: Any) -> None:
    if text:
        axes.text(x, y, text, **FONT | font)
