"""Scoring methods for given texts: log-likelihoods by hiding tokens and predicting them.

Scorers ask *masked queries*: a text with some tokens hidden, some of which are asked about. Those of a likelihood and
of the ELBO are known beforehand; `duel` and `path` begin with a text all hidden and reveal it step by step. Sums are
taken exactly on the host, so that neither the batch nor padding changes a bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import fsum, sqrt
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from unmask.core import Beliefs, Canvas, Denoiser, Noise
from unmask.core.noise import key
from unmask.core.shapes import AtBool, AtFloat, AtTokens, Columns, Int
from unmask.errors import UnmaskError, check_at_least
from unmask.policies.draft import top
from unmask.policies.likelihood import NOTHING, Likelihood, likelihood, slot_numbers
from unmask.registry import Registry

ASKED = 2**11  # positions asked about at a time: a wrapped module holds the logits of all of them


@dataclass(frozen=True)
class GivenText:
    """A text after its prompt. Its slots are the text's tokens, which are scored block by block."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    block: int  # slots per block
    lead: int = 0  # positions of the first block that the prompt fills

    def __len__(self) -> int:
        return len(self.prompt) + len(self.tokens)

    @property
    def blocks(self) -> list[range]:
        stops = range(self.block - self.lead, len(self.tokens) + self.block, self.block)
        return [range(max(0, stop - self.block), min(stop, len(self.tokens))) for stop in stops]


class MaskedQuery(NamedTuple):
    text: GivenText
    hidden: tuple[int, ...]  # slots that are masked
    asked: tuple[int, ...]  # hidden slots whose tokens are to be predicted


@dataclass(frozen=True)
class TextScore:
    """The result of scoring one text."""

    logps: list[float]  # each token's part of the log-likelihood
    forward_passes: int  # asked of the network
    computed: int  # of those, computed: identical ones of a text are computed once
    positions: int  # positions computed
    error: float | None = None  # standard error of the sum, where it is an estimate
    greedy: bool | None = (
        None  # True where each token was the likeliest when it was revealed; None if none was revealed
    )


class Scorer(ABC):
    @abstractmethod
    def __call__(self, texts: Sequence[GivenText], denoiser: Denoiser, seed: int) -> list[TextScore]:
        """Score each text. No score depends on the other texts."""


scorer: Registry[Scorer] = Registry("scorer")


@dataclass(frozen=True)
class Predictions:
    """The model's beliefs at the asked columns of each query; its last one is repeated where others have more."""

    beliefs: Beliefs
    at: Columns
    target: AtTokens  # the text's own tokens there
    real: AtBool  # False where a column is repeated
    computed: list[int]  # positions computed for each query


def predict(denoiser: Denoiser, queries: Sequence[MaskedQuery]) -> Predictions:
    """Answer queries of any lengths by one call of the network."""
    device, lengths = denoiser.device, [len(query.text) for query in queries]
    width = max(lengths)
    whole = torch.tensor([_padded(query.text, width) for query in queries], device=device)
    hidden = _columns([(query.text, query.hidden) for query in queries], width).to(device)
    at = _columns([(query.text, query.asked) for query in queries], width).to(device)
    pad = width - torch.tensor(lengths, device=device)
    nothing, ragged = torch.zeros_like(whole), min(lengths) < width
    tokens = whole.scatter(1, hidden, denoiser.mask_id)
    numbers, logp = torch.arange(len(queries), device=device), nothing.to(denoiser.dtype)
    with torch.inference_mode():
        beliefs = denoiser(Canvas(tokens, nothing, logp, pad, numbers, 0, denoiser.mask_id, ragged), at)
    counts = torch.tensor([[len(query.asked)] for query in queries], device=device)
    real = torch.arange(at.shape[1], device=device) < counts
    computed = lengths if beliefs.computed is None else beliefs.computed.tolist()
    return Predictions(beliefs, at, whole.gather(1, at), real, computed)


def portions(queries: Sequence[MaskedQuery]) -> Iterator[Sequence[MaskedQuery]]:
    """Split queries into calls that memory should hold. No result depends on the split."""
    start = most = 0
    for stop, query in enumerate(queries):
        most = max(most, len(query.asked))
        if most * (stop + 1 - start) > ASKED and stop > start:
            yield queries[start:stop]
            start, most = stop, len(query.asked)
    yield queries[start:]


def _padded(text: GivenText, width: int) -> list[int]:
    return [*[0] * (width - len(text)), *text.prompt, *text.tokens]


def _columns(rows: Sequence[tuple[GivenText, tuple[int, ...]]], width: int) -> Int[Tensor, "row at"]:
    """Return the columns of slots; the last of a row is repeated where others have more."""
    most = max(len(slots) for _, slots in rows)
    padded = [(text, slots + slots[-1:] * (most - len(slots))) for text, slots in rows]
    return torch.tensor([[width - len(text.tokens) + slot for slot in slots] for text, slots in padded])


class Weighted(NamedTuple):
    """A query, and the weight of the log p of what it asks about."""

    query: MaskedQuery
    weight: float


class Answers:
    """log p of what each query asks about. Equal queries are computed once."""

    def __init__(self, denoiser: Denoiser, weighted: Iterable[Weighted]):
        self.logps: dict[MaskedQuery, list[float]] = {}
        self.computed: dict[MaskedQuery, int] = {}
        for queries in portions(list(dict.fromkeys(each.query for each in weighted))):
            found = predict(denoiser, queries)
            self.computed |= zip(queries, found.computed, strict=True)
            for query, values in zip(queries, found.beliefs.logp(found.target).tolist(), strict=True):
                self.logps[query] = values[: len(query.asked)]

    def by_slot(self, weighted: Iterable[Weighted]) -> dict[int, float]:
        """Return the weighted sum of log p for each slot."""
        terms: dict[int, list[float]] = defaultdict(list)
        for query, weight in weighted:
            for slot, value in zip(query.asked, self.logps[query], strict=True):
                terms[slot].append(weight * value)
        return {slot: fsum(values) for slot, values in terms.items()}

    def score(self, logps: dict[int, float], weighted: Sequence[Weighted], error: float | None = None) -> TextScore:
        """Return the score of the text that the queries are about. Slots that none asked about add nothing."""
        distinct = {each.query for each in weighted}
        positions = sum(self.computed[query] for query in distinct)
        slots = range(len(weighted[0].query.text.tokens))
        return TextScore([logps.get(slot, 0.0) for slot in slots], len(weighted), len(distinct), positions, error)


@dataclass(frozen=True)
class Partition(Scorer):
    """A likelihood of a search, block by block."""

    likelihood: Likelihood

    def __call__(self, texts: Sequence[GivenText], denoiser: Denoiser, seed: int) -> list[TextScore]:
        every = [[self._queries(text, block) for block in text.blocks] for text in texts]
        answers = Answers(denoiser, (query for blocks in every for queries in blocks for query in queries))
        scores = []
        for blocks in every:
            logps: dict[int, float] = {}
            for queries in blocks:
                logps |= answers.by_slot(queries)  # a slot that a later block predicts again counts as it does then
            scores.append(answers.score(logps, [query for queries in blocks for query in queries]))
        return scores

    def _queries(self, text: GivenText, block: range) -> list[Weighted]:
        groups = self.likelihood.groups(slice(block.start, block.stop))
        if any(group.slots == NOTHING for group in groups):
            spec = likelihood.spec(self.likelihood)
            raise UnmaskError(f"{spec} needs the order in which a text was written: score by path alone")
        numbers = [(*(tuple(slot_numbers(s, len(text.tokens))) for s in group[:2]), group.weight) for group in groups]
        return [Weighted(MaskedQuery(text, hidden, counted), weight) for hidden, counted, weight in numbers]


@scorer("elbo")
@dataclass(frozen=True)
class Elbo(Scorer):
    """A lower bound of log p, estimated: random parts of the text are hidden and predicted (LLaDA, arXiv 2502.09992).

    The number of hidden tokens is uniform, and so is their choice. Texts of one prompt and length see the same masks.
    """

    n: int = 128  # masks per block

    def __post_init__(self) -> None:
        check_at_least(2, n=self.n)  # a standard error needs two

    def __call__(self, texts: Sequence[GivenText], denoiser: Denoiser, seed: int) -> list[TextScore]:
        every = [[self._masks(text, number, seed) for number in range(len(text.blocks))] for text in texts]
        answers = Answers(denoiser, (mask for blocks in every for masks in blocks for mask in masks))
        scores = []
        for blocks in every:
            variance = fsum(self._variance(masks, answers) for masks in blocks)
            masks = [mask for masks in blocks for mask in masks]
            scores.append(answers.score(answers.by_slot(masks), masks, sqrt(variance)))
        return scores

    def _masks(self, text: GivenText, number: int, seed: int) -> list[Weighted]:
        """Return queries about random slots of a block, hidden together with all that comes after it."""
        block = text.blocks[number]
        noise = Noise.root(torch.tensor([key(text.prompt)]), seed)
        uniform = noise.uniform("sample", number, torch.arange(len(block) + 1)[None], self.n)[0]  # (slot, mask)
        counts = (1 + (uniform[-1] * len(block)).long()).tolist()
        ranks = uniform[:-1].argsort(dim=0).T.tolist()
        parts = [tuple(sorted(block[slot] for slot in rank[:count])) for rank, count in zip(ranks, counts, strict=True)]
        after = tuple(range(block.stop, len(text.tokens)))
        return [Weighted(MaskedQuery(text, part + after, part), len(block) / len(part) / self.n) for part in parts]

    def _variance(self, masks: Sequence[Weighted], answers: Answers) -> float:
        """Return the variance of the mean, from the masks' own estimates."""
        estimates = [self.n * mask.weight * fsum(answers.logps[mask.query]) for mask in masks]
        mean = fsum(estimates) / self.n
        return fsum((estimate - mean) ** 2 for estimate in estimates) / (self.n - 1) / self.n


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
    def rank(self, found: Predictions) -> AtFloat: ...

    def __call__(self, texts: Sequence[GivenText], denoiser: Denoiser, seed: int) -> list[TextScore]:
        partly = [PartlyRevealed(text) for text in texts]
        while unfinished := [each for each in partly if not each.done]:
            self.step(unfinished, denoiser)
        return [each.score() for each in partly]

    def step(self, partly: Sequence[PartlyRevealed], denoiser: Denoiser) -> None:
        left = iter(partly)
        for queries in portions([each.query() for each in partly]):
            self._reveal(list(islice(left, len(queries))), queries, predict(denoiser, queries))

    def _reveal(self, partly: Sequence[PartlyRevealed], queries: Sequence[MaskedQuery], found: Predictions) -> None:
        logp, best = found.beliefs.logp(found.target).tolist(), (found.beliefs.best[0] == found.target).tolist()
        for each, positions in zip(partly, found.computed, strict=True):
            each.forward_passes += 1
            each.positions += positions
        for row, place in top(self.rank(found), found.real, self.quota).nonzero().tolist():
            partly[row].logps[queries[row].asked[place]] = logp[row][place]
            partly[row].greedy &= best[row][place]


ORDERS: dict[str, Callable[[Predictions], AtFloat]] = {
    "confidence": lambda found: found.beliefs.best[1],
    "margin": lambda found: found.beliefs.margin,
    "entropy": lambda found: -found.beliefs.entropy,
    "left-to-right": lambda found: -found.at.to(found.beliefs.best[1].dtype),
}


@scorer("duel")
@dataclass(frozen=True)
class Duel(Revealing):
    """log p under an order that the visible tokens alone decide: exact, and a probability (DUEL, arXiv 2603.01367)."""

    order: Literal["confidence", "margin", "entropy", "left-to-right"] = "confidence"  # the token revealed next

    def rank(self, found: Predictions) -> AtFloat:
        return ORDERS[self.order](found)


@scorer("path")
@dataclass(frozen=True)
class TextPath(Revealing):
    """log p of the text revealed token by token, its own likeliest first: the order looks at the text."""

    def rank(self, found: Predictions) -> AtFloat:
        return found.beliefs.logp(found.target)


def written_greedily(texts: Sequence[GivenText], denoiser: Denoiser) -> tuple[list[bool], int]:
    """Return whether low-confidence remasking, a token per step, writes each text; and the forward passes to know."""
    partly, method = [PartlyRevealed(text) for text in texts], Duel()
    while undecided := [each for each in partly if each.greedy and not each.done]:
        method.step(undecided, denoiser)
    return [each.greedy for each in partly], sum(each.forward_passes for each in partly)
