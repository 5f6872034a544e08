"""Where the boxes of a search tree go: a column per search, children centred on their parents."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from unmask.report.labels import visible
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
