"""The tree of a search, read from its trace: distinct candidates, their parents, and which were kept.

Candidates of one parent that wrote the same tokens are one node. Their completions, and so their scores, may still
differ; a node shows the best score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from unmask.core import Branch, Frame
from unmask.errors import UnmaskError
from unmask.runs.grid import decoder_label
from unmask.runs.trace import Trace

MASK, END = "░", "∎"  # shown for a mask and for the end of the text
Copy = tuple[float, float, bool]  # of a candidate: its score, what this search added to it, whether it was kept
Judge = Callable[[str], bool]  # whether an answer is right


@dataclass(frozen=True)
class Node:
    text: str  # from its first new token to its last
    written: tuple[int, ...]  # the positions written since its parent
    tokens: tuple[int, ...]  # the whole row
    parent: int | None  # its index in the previous search; None for children of the prompt
    score: float  # the best total of its copies
    gain: float  # the part of the score that this search added
    count: int  # how often it was drawn
    kept: int  # how many of them were kept
    chosen: bool = False  # whether it leads to the answer
    right: bool | None = None  # of complete candidates, if there is a judge


@dataclass(frozen=True)
class SearchStep:
    step: int
    nodes: tuple[Node, ...]  # by parent, best first

    @property
    def candidates(self) -> int:
        return sum(node.count for node in self.nodes)

    @property
    def kept(self) -> int:
        return sum(node.kept for node in self.nodes)

    @property
    def distinct(self) -> int:
        """Of the rows that were kept."""
        return len({node.tokens for node in self.nodes if node.kept})

    @property
    def path(self) -> Node:
        return next(node for node in self.nodes if node.chosen)


@dataclass(frozen=True)
class Beside:
    """What another decoder wrote at the positions of each search."""

    label: str
    texts: tuple[str, ...]  # one per search
    logp: tuple[float, ...]  # of those texts, each token when it was written
    met: tuple[str, ...]  # whether the search kept it, pruned it or never drew it
    right: bool | None


@dataclass(frozen=True)
class Tree:
    title: str
    prompt: str
    answer: str
    searches: tuple[SearchStep, ...]
    beside: Beside | None


def read_tree(trace: Trace, beside: Trace | None = None, judge: Judge | None = None) -> Tree:
    try:
        reader = Reader(trace)
        searches, answer = reader.searches(), trace.end["texts"][trace.end["chosen"]]
        if judge is not None:
            searches[-1] = _judged(searches[-1], reader, judge)
        other = None if beside is None else _beside(Reader(beside), reader, searches, judge)
        return Tree(reader.title, trace.header["prompt"], answer, tuple(searches), other)
    except (KeyError, IndexError, TypeError) as error:
        raise UnmaskError(f"the trace is incomplete or damaged: {type(error).__name__} {error}") from None


class Reader:
    """A trace and the text of its tokens."""

    def __init__(self, trace: Trace):
        self.trace = trace
        header = trace.header
        self.ids, self.mask, self.eos = header["ids"], header["mask"], set(header["eos"])
        self.slots = [place for place, token in enumerate(self.blank) if token == self.mask]

    @property
    def blank(self) -> tuple[int, ...]:
        return (*self.ids, *[self.mask] * self.trace.header["length"])

    @property
    def label(self) -> str:
        return decoder_label(self.trace.header["decoder"], len(self.slots))

    @property
    def title(self) -> str:
        header = self.trace.header
        return f"{self.label} · {header['model']} · seed {header['seed']} · {self.trace.end['cost']['forward_passes']} rows"

    @cached_property
    def last(self) -> Frame:
        return list(self.trace.replay())[-1]

    @property
    def final(self) -> tuple[int, ...]:
        """The row that was chosen."""
        return tuple(self.last.canvas.tokens[self.trace.end["chosen"]].tolist())

    def searches(self) -> list[SearchStep]:
        places: list[int | None] = [None]  # of each row, the node it came from in the latest search
        scores, searches = [0.0], []
        for frame in self.trace.replay():
            assert frame.parent is not None  # known of every replayed frame
            source = frame.parent.tolist()
            if frame.branch is None:
                places = [places[row] for row in source]
            else:
                above = searches[-1].nodes if searches else ()
                nodes = [self._node(above, *group) for group in _grouped(frame.branch, places, scores)]
                index = {(node.parent, node.tokens): place for place, node in enumerate(nodes)}
                rows = map(tuple, frame.canvas.tokens.tolist())
                places = [index[places[row], tokens] for row, tokens in zip(source, rows, strict=True)]
                searches.append(SearchStep(frame.step, tuple(nodes)))
            scores = frame.score.tolist()
        if not searches:
            raise UnmaskError(
                f"there is no tree of {self.label}: `unmask tree` draws the paper's searches (ots, order-search, "
                "token-search); `unmask view` plays this trace"
            )
        return _marked(searches, places[self.trace.end["chosen"]])

    def _node(self, above: Sequence[Node], parent: int | None, tokens: tuple[int, ...], copies: list[Copy]) -> Node:
        before = self.blank if parent is None else above[parent].tokens
        written = tuple(place for place in self.slots if before[place] != tokens[place])
        score, gain, _ = max(copies, key=lambda copy: copy[0])
        kept = sum(kept for _, _, kept in copies)
        return Node(self.text(tokens, written), written, tokens, parent, score, gain, len(copies), kept)

    def text(self, tokens: Sequence[int], places: Sequence[int]) -> str:
        """The text from the first to the last of these positions, up to the end of the answer."""
        end = next((place for place in self.slots if tokens[place] in self.eos), len(tokens))
        if not places or places[0] > end:
            return END
        span = tokens[places[0] : min(end, places[-1] + 1)]
        return self.words(span) + (END if end <= places[-1] else "")

    def answer(self, tokens: Sequence[int]) -> str:
        """The whole answer, as a grader reads it."""
        written = [tokens[place] for place in self.slots]
        end = next((i for i, token in enumerate(written) if token in self.eos), len(written))
        return self.words(written[:end])

    def words(self, tokens: Sequence[int]) -> str:
        known: dict[str, str] = self.trace.end["words"]
        return "".join(MASK if token == self.mask else known.get(str(token), MASK) for token in tokens)


def _grouped(
    branch: Branch, places: Sequence[int | None], before: Sequence[float]
) -> list[tuple[int | None, tuple[int, ...], list[Copy]]]:
    """Candidates of one parent that wrote the same tokens, by parent and best first."""
    groups: dict[tuple[int | None, tuple[int, ...]], list[Copy]] = {}
    rows = map(tuple, branch.canvas.tokens.tolist())
    columns = (branch.parent.tolist(), rows, branch.score.tolist(), branch.kept.tolist())
    for parent, tokens, score, kept in zip(*columns, strict=True):
        groups.setdefault((places[parent], tokens), []).append((score, score - before[parent], kept))
    ranked = [(parent, tokens, copies) for (parent, tokens), copies in groups.items()]
    return sorted(ranked, key=lambda group: (-1 if group[0] is None else group[0], -max(group[2])[0]))


def _marked(searches: list[SearchStep], place: int | None) -> list[SearchStep]:
    """The path to this node of the last search is marked as chosen."""
    for step in reversed(range(len(searches))):
        nodes = list(searches[step].nodes)
        if place is not None:
            nodes[place] = replace(nodes[place], chosen=True)
            place = nodes[place].parent
        searches[step] = replace(searches[step], nodes=tuple(nodes))
    return searches


def _judged(search: SearchStep, reader: Reader, judge: Judge) -> SearchStep:
    nodes = (
        node if reader.mask in node.tokens else replace(node, right=judge(reader.answer(node.tokens)))
        for node in search.nodes
    )
    return replace(search, nodes=tuple(nodes))


def _beside(other: Reader, reader: Reader, searches: Sequence[SearchStep], judge: Judge | None) -> Beside:
    if (other.blank, other.mask) != (reader.blank, reader.mask):
        raise UnmaskError("the two traces answer different prompts or lengths: there is nothing to compare")
    final, logp = other.final, other.last.canvas.logp[other.trace.end["chosen"]].tolist()
    written = [search.path.written for search in searches]
    return Beside(
        other.label,
        tuple(other.text(final, places) for places in written),
        tuple(sum(logp[place] for place in places) for places in written),
        tuple(_met(search, final, reader) for search in searches),
        None if judge is None else judge(other.answer(final)),
    )


def _met(search: SearchStep, final: Sequence[int], reader: Reader) -> str:
    same = [
        node
        for node in search.nodes
        if all(node.tokens[place] in (final[place], reader.mask) for place in reader.slots)
    ]
    if not same:
        return "never drawn"
    return "kept" if any(node.kept for node in same) else "pruned"
