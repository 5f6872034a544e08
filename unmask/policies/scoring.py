"""Scoring methods for given texts: log-likelihoods by hiding tokens and predicting them.

Scorers ask *masked queries*: a text with some tokens hidden, some of which are asked about. `duel` and `path` begin
with a text all hidden and reveal it step by step. Sums are taken exactly on the host, so that padding changes no bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import fsum, sqrt
from typing import Literal

import torch

from unmask.core import Canvas, Denoiser, Noise, Rows
from unmask.core.noise import key
from unmask.core.shapes import AtFloat
from unmask.errors import UnmaskError, check_at_least
from unmask.policies.likelihood import NOTHING, Likelihood, equally_long, likelihood, slot_numbers
from unmask.policies.remasking import ORDERS, Draft, predict, top
from unmask.registry import Registry

ASKED = 2**11  # positions asked about at a time: a wrapped module holds the logits of all of them


@dataclass(frozen=True)
class GivenText:
    """A text after its prompt. Its slots are the text's tokens, which are scored block by block."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    block: int  # slots per block
    lead: int = 0  # positions of the first block that the prompt fills

    @property
    def blocks(self) -> list[range]:
        stops = range(self.block - self.lead, len(self.tokens) + self.block, self.block)
        return [range(max(0, stop - self.block), min(stop, len(self.tokens))) for stop in stops]


@dataclass(frozen=True)
class MaskedQuery:
    text: GivenText
    hidden: tuple[int, ...]  # slots that are masked
    asked: tuple[int, ...]  # hidden slots whose tokens are to be predicted
    weight: float = field(default=1.0, compare=False)  # weight of their log p in a score


@dataclass(frozen=True)
class TextScore:
    """The result of scoring one text."""

    logps: list[float]  # each token's part of the log-likelihood
    forward_passes: int  # asked of the network
    computed: int  # of those, computed: identical ones of a text are computed once
    positions: int  # positions computed
    error: float | None = None  # standard error of the sum, where it is an estimate
    greedy: bool | None = None  # each token was the likeliest when it was revealed; None if none was revealed


class Scorer(ABC):
    @abstractmethod
    def __call__(self, texts: Sequence[GivenText], denoiser: Denoiser, seed: int) -> list[TextScore]:
        """Score each text. No score depends on the other texts."""


scorer: Registry[Scorer] = Registry("scorer")


def ask(denoiser: Denoiser, queries: Sequence[MaskedQuery]) -> tuple[Draft, list[int]]:
    """Predict what queries of any lengths ask about by one call of the network.

    Return a draft of the texts' own tokens, and the positions computed for each query.
    """
    texts = [[*query.text.prompt, *query.text.tokens] for query in queries]
    canvas = Canvas.of(texts, 0, denoiser.mask_id, denoiser.device, denoiser.dtype)
    starts = canvas.width - canvas.tokens.new_tensor([[len(query.text.tokens)] for query in queries])
    hidden = starts + canvas.tokens.new_tensor(equally_long([query.hidden for query in queries]))
    at = starts + canvas.tokens.new_tensor(equally_long([query.asked for query in queries]))
    rows = Rows(canvas, Noise.root(canvas.problem, 0), hidden, canvas.problem, denoiser)
    with torch.inference_mode():
        draft = predict(rows, hidden, at)
    computed = draft.beliefs.computed
    return draft, [len(text) for text in texts] if computed is None else computed.tolist()


def portions(queries: Sequence[MaskedQuery]) -> Iterator[Sequence[MaskedQuery]]:
    """Split queries into calls that memory should hold. No result depends on the split."""
    start = most = 0
    for stop, query in enumerate(queries):
        most = max(most, len(query.asked))
        if most * (stop + 1 - start) > ASKED and stop > start:
            yield queries[start:stop]
            start, most = stop, len(query.asked)
    yield queries[start:]


Blocks = Sequence[Sequence[MaskedQuery]]  # the queries about each block of a text
Logps = Mapping[MaskedQuery, list[float]]  # log p of what a query asks about, whatever its weight


class Asking(Scorer):
    """The base of scorers whose queries are known beforehand."""

    @abstractmethod
    def queries(self, text: GivenText, number: int, seed: int) -> list[MaskedQuery]:
        """Return the queries about a block of a text."""

    def error(self, blocks: Blocks, logps: Logps) -> float | None:
        """Return the standard error of a text's score, if it is an estimate."""
        return None

    def __call__(self, texts: Sequence[GivenText], denoiser: Denoiser, seed: int) -> list[TextScore]:
        every = [[self.queries(text, number, seed) for number in range(len(text.blocks))] for text in texts]
        logps: dict[MaskedQuery, list[float]] = {}
        computed: dict[MaskedQuery, int] = {}
        for queries in portions(list({query: None for blocks in every for block in blocks for query in block})):
            draft, positions = ask(denoiser, queries)
            computed |= zip(queries, positions, strict=True)
            logps |= {query: logp[: len(query.asked)] for query, logp in zip(queries, draft.logp.tolist(), strict=True)}
        return [self._score(text, blocks, logps, computed) for text, blocks in zip(texts, every, strict=True)]

    def _score(self, text: GivenText, blocks: Blocks, logps: Logps, computed: Mapping[MaskedQuery, int]) -> TextScore:
        """Sum log p by slot. A slot that a later block predicts again counts as it does then, one never asked as 0."""
        by_slot = dict.fromkeys(range(len(text.tokens)), 0.0)
        for block in blocks:
            terms: dict[int, list[float]] = defaultdict(list)
            for query in block:
                for slot, logp in zip(query.asked, logps[query], strict=True):
                    terms[slot].append(query.weight * logp)
            by_slot |= {slot: fsum(parts) for slot, parts in terms.items()}
        asked = [query for block in blocks for query in block]
        positions = [computed[query] for query in set(asked)]
        return TextScore([*by_slot.values()], len(asked), len(positions), sum(positions), self.error(blocks, logps))


@dataclass(frozen=True)
class Partition(Asking):
    """A likelihood of a search, block by block."""

    likelihood: Likelihood

    def queries(self, text: GivenText, number: int, seed: int) -> list[MaskedQuery]:
        block, queries = text.blocks[number], []
        for group in self.likelihood.groups(slice(block.start, block.stop)):
            if group.slots == NOTHING:
                spec = likelihood.spec(self.likelihood)
                raise UnmaskError(f"{spec} needs the order in which a text was written: score by path alone")
            hidden, counted = (tuple(slot_numbers(slots, len(text.tokens))) for slots in group[:2])
            queries.append(MaskedQuery(text, hidden, counted, group.weight))
        return queries


@scorer("elbo")
@dataclass(frozen=True)
class Elbo(Asking):
    """A lower bound of log p, estimated: random parts of the text are hidden and predicted (LLaDA, arXiv 2502.09992).

    The number of hidden tokens is uniform, and so is their choice. Texts of one prompt and length see the same masks.
    """

    n: int = 128  # masks per block

    def __post_init__(self) -> None:
        check_at_least(2, n=self.n)  # a standard error needs two

    def queries(self, text: GivenText, number: int, seed: int) -> list[MaskedQuery]:
        """Return queries about random slots of a block, hidden together with all that comes after it."""
        block = text.blocks[number]
        noise = Noise.root(torch.tensor([key(text.prompt)]), seed)
        uniform = noise.uniform("sample", number, torch.arange(len(block) + 1)[None], self.n)[0]  # (slot, mask)
        counts = (1 + (uniform[-1] * len(block)).long()).tolist()
        ranks = uniform[:-1].argsort(dim=0).T.tolist()
        parts = [tuple(sorted(block[slot] for slot in rank[:count])) for rank, count in zip(ranks, counts, strict=True)]
        after = tuple(range(block.stop, len(text.tokens)))
        return [MaskedQuery(text, part + after, part, len(block) / len(part) / self.n) for part in parts]

    def error(self, blocks: Blocks, logps: Logps) -> float:
        """Return the root of the blocks' variances of the mean, from the masks' own estimates."""
        variances = []
        for block in blocks:
            estimates = [self.n * query.weight * fsum(logps[query]) for query in block]
            mean = fsum(estimates) / self.n
            variances.append(fsum((estimate - mean) ** 2 for estimate in estimates) / (self.n - 1) / self.n)
        return sqrt(fsum(variances))


@dataclass
class PartlyRevealed:
    """A text while it is revealed."""

    text: GivenText
    logps: dict[int, float] = field(default_factory=dict)  # by revealed slot
    greedy: bool = True
    forward_passes: int = 0
    positions: int = 0

    @property
    def done(self) -> bool:
        return len(self.logps) == len(self.text.tokens)

    def query(self) -> MaskedQuery:
        """Return the query about the hidden slots of the first block that has any."""
        hidden = tuple(slot for slot in range(len(self.text.tokens)) if slot not in self.logps)
        block = next(block for block in self.text.blocks if hidden[0] in block)
        return MaskedQuery(self.text, hidden, tuple(slot for slot in hidden if slot in block))

    def score(self) -> TextScore:
        logps = [self.logps[slot] for slot in range(len(self.text.tokens))]
        return TextScore(logps, self.forward_passes, self.forward_passes, self.positions, greedy=self.greedy)


@dataclass(frozen=True)
class Revealing(Scorer):
    """The base of scorers that reveal a text step by step; a subclass ranks the slots that a step may reveal."""

    quota: int = 1  # tokens revealed per step

    def __post_init__(self) -> None:
        check_at_least(1, quota=self.quota)

    @abstractmethod
    def rank(self, draft: Draft) -> AtFloat:
        """Rank the asked positions, given a draft of the text's own tokens."""

    def __call__(self, texts: Sequence[GivenText], denoiser: Denoiser, seed: int) -> list[TextScore]:
        partly = [PartlyRevealed(text) for text in texts]
        while unfinished := [each for each in partly if not each.done]:
            self.step(unfinished, denoiser)
        return [each.score() for each in partly]

    def step(self, partly: Sequence[PartlyRevealed], denoiser: Denoiser) -> None:
        """Reveal the next tokens of each text."""
        left = iter(partly)
        for queries in portions([each.query() for each in partly]):
            (draft, computed), some = ask(denoiser, queries), list(islice(left, len(queries)))
            for each, positions in zip(some, computed, strict=True):
                each.forward_passes += 1
                each.positions += positions
            logp, best = draft.logp.tolist(), (draft.beliefs.best[0] == draft.token).tolist()
            for row, place in top(self.rank(draft), draft.fillable, self.quota).nonzero().tolist():
                some[row].logps[queries[row].asked[place]] = logp[row][place]
                some[row].greedy &= best[row][place]


@scorer("duel")
@dataclass(frozen=True)
class Duel(Revealing):
    """log p under an order that the visible tokens alone decide: exact, and a probability (DUEL, arXiv 2603.01367)."""

    order: Literal["confidence", "margin", "entropy", "left-to-right"] = "confidence"  # the token revealed next

    def rank(self, draft: Draft) -> AtFloat:
        token, logp = draft.beliefs.best
        return ORDERS[self.order](replace(draft, token=token, logp=logp))


@scorer("path")
@dataclass(frozen=True)
class TextPath(Revealing):
    """log p of the text revealed token by token, its own likeliest first: the order looks at the text."""

    def rank(self, draft: Draft) -> AtFloat:
        return ORDERS["confidence"](draft)


def written_greedily(texts: Sequence[GivenText], denoiser: Denoiser) -> tuple[list[bool], int]:
    """Return whether low-confidence remasking, a token per step, writes each text; and the forward passes to know."""
    partly, method = [PartlyRevealed(text) for text in texts], Duel()
    while undecided := [each for each in partly if each.greedy and not each.done]:
        method.step(undecided, denoiser)
    return [each.greedy for each in partly], sum(each.forward_passes for each in partly)
