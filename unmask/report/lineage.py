"""The tree a search grew, read from its trace: distinct candidates, whose children they are, which lived on.

Candidates of one parent that wrote the same are one node, however often they were drawn; they may still differ in
what was drawn for the masks they left, and so in their scores, of which a node shows the best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from unmask.core import Frame
from unmask.errors import UnmaskError
from unmask.report.labels import decoder_label
from unmask.runs.trace import Trace

VEIL, END = "░", "∎"  # stand for a mask and for the end of the text
Judge = Callable[[str], bool]  # whether a finished answer is right


@dataclass(frozen=True)
class Node:
    text: str  # from its first new token to its last
    written: tuple[int, ...]  # the positions that are new since its parent
    tokens: tuple[int, ...]  # the whole row
    parent: int | None  # its place in the search before; None for children of the prompt
    score: float  # the best total of its copies
    gain: float  # how much of it came with this search
    count: int  # how often it was drawn
    kept: int  # how many of these lived on
    chosen: bool = False  # whether the answer came of it
    right: bool | None = None  # of finished candidates, where someone judged them


@dataclass(frozen=True)
class Search:
    step: int
    nodes: tuple[Node, ...]  # by their parents' places, best first

    @property
    def candidates(self) -> int:
        return sum(node.count for node in self.nodes)

    @property
    def kept(self) -> int:
        return sum(node.kept for node in self.nodes)

    @property
    def path(self) -> Node:
        return next(node for node in self.nodes if node.chosen)


@dataclass(frozen=True)
class Beside:
    """What another decoder wrote where the chosen path of the tree did."""

    label: str
    texts: tuple[str, ...]  # for each search
    logp: tuple[float, ...]  # of what is in them, each token when it was written
    met: tuple[str, ...]  # whether the search had it too: kept, pruned or never drawn
    right: bool | None


@dataclass(frozen=True)
class Tree:
    title: str
    prompt: str
    answer: str
    searches: tuple[Search, ...]
    beside: Beside | None


def grow(trace: Trace, beside: Trace | None = None, judge: Judge | None = None) -> Tree:
    try:
        return _grow(Reader(trace), None if beside is None else Reader(beside), judge)
    except (KeyError, IndexError, TypeError) as error:
        raise UnmaskError(f"the trace does not hold together: {type(error).__name__} {error}") from None


def _grow(reader: Reader, beside: Reader | None, judge: Judge | None) -> Tree:
    searches, trace = reader.searches(), reader.trace
    if judge is not None:
        searches[-1] = _judged(searches[-1], reader, judge)
    other = None if beside is None else _beside(beside, reader, searches, judge)
    return Tree(reader.title, trace.header["prompt"], trace.end["texts"][trace.end["chosen"]], tuple(searches), other)


@dataclass
class Draft:
    """Candidates of one parent that wrote the same."""

    above: Draft | None
    tokens: tuple[int, ...]
    scores: list[float] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)
    kept: int = 0


class Reader:
    """A trace and its words."""

    def __init__(self, trace: Trace):
        self.trace = trace
        header = trace.header
        self.ids, self.mask, self.eos = header["ids"], header["mask"], set(header["eos"])
        self.holes = [place for place, token in enumerate(self.blank) if token == self.mask]

    @property
    def blank(self) -> tuple[int, ...]:
        return (*self.ids, *[self.mask] * self.trace.header["length"])

    @property
    def label(self) -> str:
        return decoder_label(self.trace.header["decoder"], len(self.holes))

    @property
    def title(self) -> str:
        header = self.trace.header
        return f"{self.label} · {header['model']} · seed {header['seed']} · {self.trace.end['cost']['rows']} rows"

    @cached_property
    def last(self) -> Frame:
        return list(self.trace.replay())[-1]

    @property
    def final(self) -> tuple[int, ...]:
        """The row that was chosen."""
        return tuple(self.last.canvas.tokens[self.trace.end["chosen"]].tolist())

    def searches(self) -> list[Search]:
        above: list[Draft | None] = [None]  # of each row, the candidate it came from
        scores, grown = [0.0], []
        for frame in self.trace.replay():
            source = frame.canvas.source.tolist()
            if frame.branch is None:
                above = [above[row] for row in source]
            else:
                drafts = _drafts(frame, above, scores)
                rows = map(tuple, frame.canvas.tokens.tolist())
                above = [drafts[id(above[row]), tokens] for row, tokens in zip(source, rows, strict=True)]
                grown.append((frame.step, list(drafts.values())))
            scores = frame.score.tolist()
        if not grown:
            raise UnmaskError(f"{self.label} did not search, so its trace holds no tree: trace ots(beams=4), say")
        return self._finished(grown, above[self.trace.end["chosen"]])

    def _finished(self, grown: list[tuple[int, list[Draft]]], chosen: Draft | None) -> list[Search]:
        """From the last search to the first the chosen path is known, from the first to the last everyone's place."""
        path: set[int] = set()
        while chosen is not None:
            path.add(id(chosen))
            chosen = chosen.above
        searches, places = [], {id(None): -1}
        for step, drafts in grown:
            ranked = sorted(drafts, key=lambda one: (places[id(one.above)], -max(one.scores)))
            nodes = tuple(self._node(one, places[id(one.above)], id(one) in path) for one in ranked)
            searches.append(Search(step, nodes))
            places = {id(one): place for place, one in enumerate(ranked)}
        return searches

    def _node(self, draft: Draft, parent: int, chosen: bool) -> Node:
        before = draft.above.tokens if draft.above else self.blank
        written = tuple(place for place in self.holes if before[place] != draft.tokens[place])
        best = max(range(len(draft.scores)), key=draft.scores.__getitem__)
        return Node(
            self.said(draft.tokens, written),
            written,
            draft.tokens,
            None if draft.above is None else parent,
            draft.scores[best],
            draft.gains[best],
            len(draft.scores),
            draft.kept,
            chosen,
        )

    def said(self, tokens: Sequence[int], places: Sequence[int]) -> str:
        """The text between the first and last of these positions, up to the answer's end."""
        end = next((place for place in self.holes if tokens[place] in self.eos), len(tokens))
        if not places or places[0] > end:
            return END
        span = tokens[places[0] : min(end, places[-1] + 1)]
        return self.words(span) + (END if end <= places[-1] else "")

    def answer(self, tokens: Sequence[int]) -> str:
        """All that was written, as a grader would read it."""
        written = [tokens[place] for place in self.holes]
        end = next((i for i, token in enumerate(written) if token in self.eos), len(written))
        return self.words(written[:end])

    def words(self, tokens: Sequence[int]) -> str:
        known: dict[str, str] = self.trace.end["words"]
        return "".join(VEIL if token == self.mask else known.get(str(token), VEIL) for token in tokens)


def _drafts(frame: Frame, above: Sequence[Draft | None], before: Sequence[float]) -> dict[tuple[int, Any], Draft]:
    drafts: dict[tuple[int, Any], Draft] = {}
    branch = frame.branch
    assert branch is not None
    rows = map(tuple, branch.canvas.tokens.tolist())
    columns = (branch.parent.tolist(), rows, branch.score.tolist(), branch.kept.tolist())
    for parent, tokens, score, kept in zip(*columns, strict=True):
        one = drafts.setdefault((id(above[parent]), tokens), Draft(above[parent], tokens))
        one.scores.append(score)
        one.gains.append(score - before[parent])
        one.kept += kept
    return drafts


def _judged(search: Search, reader: Reader, judge: Judge) -> Search:
    full = [reader.mask not in node.tokens for node in search.nodes]
    right = [judge(reader.answer(node.tokens)) if ok else None for node, ok in zip(search.nodes, full, strict=True)]
    nodes = tuple(replace(node, right=one) for node, one in zip(search.nodes, right, strict=True))
    return replace(search, nodes=nodes)


def _beside(other: Reader, reader: Reader, searches: Sequence[Search], judge: Judge | None) -> Beside:
    if (other.blank, other.mask) != (reader.blank, reader.mask):
        raise UnmaskError("the two traces answer different prompts or lengths: there is nothing to compare")
    final, logp = other.final, other.last.canvas.logp[other.trace.end["chosen"]].tolist()
    written = [search.path.written for search in searches]
    return Beside(
        other.label,
        tuple(other.said(final, places) for places in written),
        tuple(sum(logp[place] for place in places) for places in written),
        tuple(_met(search, final, reader) for search in searches),
        None if judge is None else judge(other.answer(final)),
    )


def _met(search: Search, final: Sequence[int], reader: Reader) -> str:
    same = [
        node
        for node in search.nodes
        if all(node.tokens[place] in (final[place], reader.mask) for place in reader.holes)
    ]
    if not same:
        return "never drawn"
    return "kept" if any(node.kept for node in same) else "pruned"


def children(tree: Tree, search: int, parent: int | None) -> Iterator[tuple[int, Node]]:
    """Of one node of the search before: their places and themselves."""
    if search < len(tree.searches):
        for place, node in enumerate(tree.searches[search].nodes):
            if node.parent == parent:
                yield place, node
