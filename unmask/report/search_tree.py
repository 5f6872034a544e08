"""The tree of a search, read from its trace, as plain values and as text for a terminal.

Candidates of one parent that wrote the same tokens are one node. Their completions, and so their scores, may still
differ; a node shows the best score.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from unmask.core import Branch
from unmask.errors import UnmaskError
from unmask.report.gather import grouped, visible
from unmask.runs.grid import decoder_label
from unmask.runs.trace import Trace

MASK, END = "░", "∎"  # shown for a mask and for the end of the text


@dataclass(frozen=True)
class Node:
    """All candidates of one parent that wrote the same tokens."""

    text: str  # from its first new token to its last
    written: tuple[int, ...]  # the positions written since its parent
    tokens: tuple[int, ...]  # the whole row
    parent: int | None  # its index in the previous search; None for children of the prompt
    score: float  # the best total of its copies
    gain: float  # the part of the score that this search added
    count: int  # number of candidates
    kept: int  # number of candidates that were kept
    chosen: bool = False  # whether it leads to the answer


@dataclass(frozen=True)
class SearchStep:
    """One search: the candidates that were drawn and ranked together."""

    step: int
    nodes: tuple[Node, ...]  # by parent, best first

    @property
    def candidates(self) -> int:
        return sum(node.count for node in self.nodes)

    @property
    def kept(self) -> int:
        return sum(node.kept for node in self.nodes)

    @property
    def path(self) -> Node:
        return next(node for node in self.nodes if node.chosen)

    @property
    def counts(self) -> str:
        return f"{self.candidates} drawn, {len(self.nodes)} distinct, {self.kept} kept"


@dataclass(frozen=True)
class Beside:
    """The text that a second decoder wrote at the positions of each search."""

    label: str
    # For each search the text, its log p when it was written, and if the search kept it, pruned it or never drew it.
    parts: tuple[tuple[str, float, str], ...]


@dataclass(frozen=True)
class Tree:
    """A search, and optionally a second decoder's answer to the same prompt."""

    title: str
    prompt: str
    answer: str
    searches: tuple[SearchStep, ...]
    beside: Beside | None


def read_tree(trace: Trace, beside: Trace | None = None) -> Tree:
    """Read the tree of a search from its trace, and compare it with a second trace of the same prompt."""
    try:
        reader, header, passes = Reader(trace), trace.header, trace.end["cost"]["forward_passes"]
        title = f"{reader.label} · {header['model']} · seed {header['seed']} · {passes} forward passes"
        searches, answer = reader.searches(), trace.end["texts"][trace.end["chosen"]]
        other = None if beside is None else _beside(Reader(beside), reader, searches)
        return Tree(title, header["prompt"], answer, tuple(searches), other)
    except (KeyError, IndexError, TypeError) as error:
        raise UnmaskError(f"the trace is incomplete or damaged: {type(error).__name__} {error}") from None


class Reader:
    """A trace and the text of its tokens."""

    def __init__(self, trace: Trace):
        self.trace, header = trace, trace.header
        self.mask, self.eos = header["mask"], set(header["eos"])
        self.blank = (*header["ids"], *[self.mask] * header["length"])
        self.slots = [place for place, token in enumerate(self.blank) if token == self.mask]
        self.label = decoder_label(header["decoder"], len(self.slots))

    def searches(self) -> list[SearchStep]:
        places: list[int | None] = [None]  # of each row, the node it came from in the latest search
        scores, searches = [0.0], []
        for frame in self.trace.replay():
            assert frame.parent is not None  # every replayed frame has parents
            source = frame.parent.tolist()
            if frame.branch is None:
                places = [places[row] for row in source]
            else:
                above = searches[-1].nodes if searches else ()
                nodes = self._nodes(frame.branch, above, places, scores)
                index = {(node.parent, node.tokens): place for place, node in enumerate(nodes)}
                rows = map(tuple, frame.canvas.tokens.tolist())
                places = [index[places[row], tokens] for row, tokens in zip(source, rows, strict=True)]
                searches.append(SearchStep(frame.step, tuple(nodes)))
            scores = frame.score.tolist()
        if not searches:
            raise UnmaskError(
                f"{self.label} has no tree: `unmask tree` draws the searches of the paper (ots, order-search, "
                "token-search); `unmask view` plays this trace"
            )
        return _marked(searches, places[self.trace.end["chosen"]])

    def _nodes(
        self, branch: Branch, above: Sequence[Node], places: Sequence[int | None], before: Sequence[float]
    ) -> list[Node]:
        """Group candidates of one parent that wrote the same tokens; sort the nodes by parent, then by score."""
        rows = map(tuple, branch.canvas.tokens.tolist())
        candidates = zip(branch.parent.tolist(), rows, branch.score.tolist(), branch.kept.tolist(), strict=True)
        nodes = []
        for (parent, tokens), copies in grouped(candidates, lambda each: (places[each[0]], each[1])).items():
            earlier = self.blank if parent is None else above[parent].tokens
            written = tuple(place for place in self.slots if earlier[place] != tokens[place])
            row, _, score, _ = max(copies, key=itemgetter(2))
            kept, text = sum(kept for *_, kept in copies), self.text(tokens, written)
            nodes.append(Node(text, written, tokens, parent, score, score - before[row], len(copies), kept))
        return sorted(nodes, key=lambda node: (-1 if node.parent is None else node.parent, -node.score))

    def text(self, tokens: Sequence[int], places: Sequence[int]) -> str:
        """Return the text from the first to the last of these positions, up to the end of the answer."""
        end = next((place for place in self.slots if tokens[place] in self.eos), len(tokens))
        if not places or places[0] > end:
            return END
        known: dict[str, str] = self.trace.end["words"]
        span = tokens[places[0] : min(end, places[-1] + 1)]
        words = (MASK if token == self.mask else known.get(str(token), MASK) for token in span)
        return "".join(words) + (END if end <= places[-1] else "")


def _marked(searches: list[SearchStep], place: int | None) -> list[SearchStep]:
    """Mark the path to this node of the last search as chosen."""
    for step in reversed(range(len(searches))):
        if place is None:
            break
        nodes = list(searches[step].nodes)
        nodes[place] = replace(nodes[place], chosen=True)
        place = nodes[place].parent
        searches[step] = replace(searches[step], nodes=tuple(nodes))
    return searches


def _beside(other: Reader, reader: Reader, searches: Sequence[SearchStep]) -> Beside:
    if (other.blank, other.mask) != (reader.blank, reader.mask):
        raise UnmaskError("the two traces answer different prompts or lengths: there is nothing to compare")
    canvas, chosen = list(other.trace.replay())[-1].canvas, other.trace.end["chosen"]
    final, logp = canvas.tokens[chosen].tolist(), canvas.logp[chosen].tolist()
    parts = []
    for search in searches:
        places = search.path.written
        total = sum(logp[place] for place in places)
        parts.append((other.text(final, places), total, _met(search, final, reader)))
    return Beside(other.label, tuple(parts))


def _met(search: SearchStep, final: Sequence[int], reader: Reader) -> str:
    same = [
        node
        for node in search.nodes
        if all(node.tokens[place] in (final[place], reader.mask) for place in reader.slots)
    ]
    if not same:
        return "never drawn"
    return "kept" if any(node.kept for node in same) else "pruned"


def describe(tree: Tree, width: int = 100) -> str:
    """Return the tree as text: ● leads to the answer, ○ was kept, · was pruned."""
    last = tree.searches[-1]
    lines = [_flat(tree.title), _flat(tree.prompt)]
    lines += [f"{heading(place, search)}: {search.counts}" for place, search in enumerate(tree.searches)]
    distinct = len({node.tokens for node in last.nodes if node.kept})
    lines += ["", f"{distinct} distinct of {last.kept} rows survive the last search"]
    lines += _branches(tree, 0, None, "")
    if tree.beside:
        lines += ["", f"beside it {_flat(tree.beside.label)}"]
        lines += [f"  {met:<11} {hundredths(logp):>8}  {_flat(text)}" for text, logp, met in tree.beside.parts]
    return "\n".join(line if len(line) <= width else line[: width - 1] + "…" for line in lines) + "\n"


def _branches(tree: Tree, search: int, parent: int | None, indent: str) -> Iterator[str]:
    nodes = tree.searches[search].nodes if search < len(tree.searches) else ()
    children = [(place, node) for place, node in enumerate(nodes) if node.parent == parent]
    for place, node in children:
        final = place == children[-1][0]
        sign = "●" if node.chosen else "○" if node.kept else "·"
        yield f"{indent}{'└' if final else '├'}{sign} {facts(node)}  {_flat(node.text)}"
        yield from _branches(tree, search + 1, place, indent + ("   " if final else "│  "))


def heading(place: int, search: SearchStep) -> str:
    return f"search {place + 1}, step {search.step}"


def facts(node: Node) -> str:
    """Return the total score, the part that this search added unless it is all of it, and the number of candidates."""
    added = f" ({hundredths(node.gain)})" if node.parent is not None else ""
    return hundredths(node.score) + added + (f" ×{node.count}" if node.count > 1 else "")


def hundredths(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _flat(text: str) -> str:
    return visible(text.strip("\n").replace("\n", "↵"))
