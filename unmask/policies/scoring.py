"""A way to score a finished text: from passages to judgements, each independent of the others. Texts whose log-likelihood is asked for, and clozes made of them: some tokens hidden, some asked about. Ways that hide parts of a text and have them predicted from the rest: the likelihoods of a search, and the ELBO. Ways that begin with a text all hidden and reveal it step by step: log p of each token when its turn comes."""

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
from unmask.errors import UnmaskError
from unmask.policies.draft import top
from unmask.policies.likelihood import NOTHING, Likelihood, Slots, likelihood
from unmask.registry import Registry


@dataclass(frozen=True)
class TextScore:
    """What a way says of a passage."""

    logps: list[float]  # what each token adds to the log-likelihood
    forward_passes: int  # asked of the network
    computed: int  # computed: identical rows of a passage are computed once
    positions: int  # computed
    error: float | None = None  # the standard error of the sum, where it is an estimate
    greedy: bool | None = None  # whether each token was the likeliest when it was revealed, where any was


class Scorer(ABC):
    @abstractmethod
    def __call__(self, passages: Sequence[Passage], denoiser: Denoiser, seed: int) -> list[TextScore]: ...


scorer: Registry[Scorer] = Registry("scorer")


ASKED = 2**11  # positions asked about at a time: a wrapped module holds the logits of all of them


@dataclass(frozen=True)
class Passage:
    """A text after its prompt. Slots are the text's tokens; blocks of them are scored one after another."""

    prompt: tuple[int, ...]
    text: tuple[int, ...]
    block: int  # slots per block
    lead: int = 0  # positions of the first block that the prompt fills

    def __len__(self) -> int:
        return len(self.prompt) + len(self.text)

    @property
    def blocks(self) -> list[range]:
        stops = range(self.block - self.lead, len(self.text) + self.block, self.block)
        return [range(max(0, stop - self.block), min(stop, len(self.text))) for stop in stops]


class Cloze(NamedTuple):
    passage: Passage
    hidden: tuple[int, ...]  # slots that are masks
    asked: tuple[int, ...]  # those of them that the model is asked about


@dataclass(frozen=True)
class Reply:
    """Beliefs at the asked columns of each cloze; its last one is repeated where others have more."""

    beliefs: Beliefs
    at: Columns
    target: AtTokens  # the text's own tokens there
    real: AtBool  # False where a column is repeated
    computed: list[int]  # positions computed for each cloze


def ask(denoiser: Denoiser, clozes: Sequence[Cloze]) -> Reply:
    """One call of the network, whatever the lengths."""
    device, lengths = denoiser.device, [len(cloze.passage) for cloze in clozes]
    width = max(lengths)
    whole = torch.tensor([_row(cloze.passage, width) for cloze in clozes], device=device)
    hidden = _columns([(cloze.passage, cloze.hidden) for cloze in clozes], width).to(device)
    at = _columns([(cloze.passage, cloze.asked) for cloze in clozes], width).to(device)
    pad = width - torch.tensor(lengths, device=device)
    nothing, ragged = torch.zeros_like(whole), min(lengths) < width
    tokens = whole.scatter(1, hidden, denoiser.mask_id)
    numbers, logp = torch.arange(len(clozes), device=device), nothing.to(denoiser.dtype)
    with torch.inference_mode():
        beliefs = denoiser(Canvas(tokens, nothing, logp, pad, numbers, 0, denoiser.mask_id, ragged), at)
    counts = torch.tensor([[len(cloze.asked)] for cloze in clozes], device=device)
    real = torch.arange(at.shape[1], device=device) < counts
    computed = lengths if beliefs.computed is None else beliefs.computed.tolist()
    return Reply(beliefs, at, whole.gather(1, at), real, computed)


def portions(clozes: Sequence[Cloze]) -> Iterator[Sequence[Cloze]]:
    """As many at a time as memory should hold. Answers do not depend on it."""
    start = most = 0
    for stop, cloze in enumerate(clozes):
        most = max(most, len(cloze.asked))
        if most * (stop + 1 - start) > ASKED and stop > start:
            yield clozes[start:stop]
            start, most = stop, len(cloze.asked)
    yield clozes[start:]


def _row(passage: Passage, width: int) -> list[int]:
    return [*[0] * (width - len(passage)), *passage.prompt, *passage.text]


def _columns(rows: Sequence[tuple[Passage, tuple[int, ...]]], width: int) -> Int[Tensor, "row at"]:
    """Columns of slots; the last of a row is repeated where others have more."""
    most = max(len(slots) for _, slots in rows)
    padded = [(passage, slots + slots[-1:] * (most - len(slots))) for passage, slots in rows]
    return torch.tensor([[width - len(passage.text) + slot for slot in slots] for passage, slots in padded])


class Weighed(NamedTuple):
    """A cloze, and the weight of the log p of what it asks about."""

    cloze: Cloze
    weight: float


class Answers:
    """log p of what each cloze asks about. Equal clozes are asked once."""

    def __init__(self, denoiser: Denoiser, groups: Iterable[Weighed]):
        self.logps: dict[Cloze, list[float]] = {}
        self.computed: dict[Cloze, int] = {}
        for some in portions(list(dict.fromkeys(group.cloze for group in groups))):
            reply = ask(denoiser, some)
            self.computed |= zip(some, reply.computed, strict=True)
            for cloze, values in zip(some, reply.beliefs.logp(reply.target).tolist(), strict=True):
                self.logps[cloze] = values[: len(cloze.asked)]

    def by_slot(self, groups: Iterable[Weighed]) -> dict[int, float]:
        """What the groups say of each slot, added up."""
        terms: dict[int, list[float]] = defaultdict(list)
        for cloze, weight in groups:
            for slot, value in zip(cloze.asked, self.logps[cloze], strict=True):
                terms[slot].append(weight * value)
        return {slot: fsum(values) for slot, values in terms.items()}

    def judgement(self, logps: dict[int, float], groups: Sequence[Weighed], error: float | None = None) -> TextScore:
        """Slots that no group asked about add nothing."""
        distinct = {group.cloze for group in groups}
        positions = sum(self.computed[cloze] for cloze in distinct)
        slots = range(len(groups[0].cloze.passage.text))
        return TextScore([logps.get(slot, 0.0) for slot in slots], len(groups), len(distinct), positions, error)


@dataclass(frozen=True)
class Partition(Scorer):
    """A likelihood of a search, block by block."""

    likelihood: Likelihood

    def __call__(self, passages: Sequence[Passage], denoiser: Denoiser, seed: int) -> list[TextScore]:
        del seed
        every = [[self._groups(passage, block) for block in passage.blocks] for passage in passages]
        answers = Answers(denoiser, (group for blocks in every for groups in blocks for group in groups))
        judgements = []
        for blocks in every:
            logps: dict[int, float] = {}
            for groups in blocks:
                logps |= answers.by_slot(groups)  # a slot that a later block predicts again counts as it does then
            judgements.append(answers.judgement(logps, [group for groups in blocks for group in groups]))
        return judgements

    def _groups(self, passage: Passage, block: range) -> list[Weighed]:
        groups = self.likelihood.groups(slice(block.start, block.stop))
        if any(group.slots == NOTHING for group in groups):
            spec = likelihood.spec(self.likelihood)
            raise UnmaskError(f"{spec} needs the order in which a text was written: score by path alone")
        length = len(passage.text)
        return [
            Weighed(Cloze(passage, _numbers(slots, length), _numbers(counted, length)), weight)
            for slots, counted, weight in groups
        ]


@scorer("elbo")
@dataclass(frozen=True)
class Elbo(Scorer):
    """A lower bound of log p, estimated: random parts of the text are hidden and predicted (LLaDA, arXiv 2502.09992).

    How many tokens are hidden is uniform, and so is which. Texts of one prompt and length see the same masks.
    """

    n: int = 128  # masks per block

    def __post_init__(self) -> None:
        if self.n < 2:
            raise UnmaskError(f"n={self.n} does not work: choose 2 or more, so that the error can be told")

    def __call__(self, passages: Sequence[Passage], denoiser: Denoiser, seed: int) -> list[TextScore]:
        every = [[self._masks(passage, number, seed) for number in range(len(passage.blocks))] for passage in passages]
        answers = Answers(denoiser, (mask for blocks in every for masks in blocks for mask in masks))
        judgements = []
        for blocks in every:
            variance = fsum(self._variance(masks, answers) for masks in blocks)
            masks = [mask for masks in blocks for mask in masks]
            judgements.append(answers.judgement(answers.by_slot(masks), masks, sqrt(variance)))
        return judgements

    def _masks(self, passage: Passage, number: int, seed: int) -> list[Weighed]:
        """Slots of a block, hidden together with all that comes after it."""
        block = passage.blocks[number]
        noise = Noise.root(torch.tensor([key(passage.prompt)]), seed)
        uniform = noise.uniform("sample", number, torch.arange(len(block) + 1)[None], self.n)[0]  # (slot, mask)
        counts = (1 + (uniform[-1] * len(block)).long()).tolist()
        ranks = uniform[:-1].argsort(dim=0).T.tolist()
        parts = [tuple(sorted(block[slot] for slot in rank[:count])) for rank, count in zip(ranks, counts, strict=True)]
        after = tuple(range(block.stop, len(passage.text)))
        return [Weighed(Cloze(passage, part + after, part), len(block) / len(part) / self.n) for part in parts]

    def _variance(self, masks: Sequence[Weighed], answers: Answers) -> float:
        """Of the mean, from the masks' own estimates."""
        estimates = [self.n * mask.weight * fsum(answers.logps[mask.cloze]) for mask in masks]
        mean = fsum(estimates) / self.n
        return fsum((estimate - mean) ** 2 for estimate in estimates) / (self.n - 1) / self.n


def _numbers(slots: Slots, length: int) -> tuple[int, ...]:
    return tuple(range(length)[slots]) if isinstance(slots, slice) else slots


Rank = Callable[[Reply], AtFloat]
RANKS: dict[str, Rank] = {
    "confidence": lambda reply: reply.beliefs.best[1],
    "margin": lambda reply: reply.beliefs.margin,
    "entropy": lambda reply: -reply.beliefs.entropy,
    "left-to-right": lambda reply: -reply.at.to(reply.beliefs.best[1].dtype),
}


@dataclass
class Reading:
    """A passage while it is revealed."""

    passage: Passage
    logps: dict[int, float] = field(default_factory=dict)  # of the slots that are revealed
    greedy: bool = True
    rows: int = 0
    positions: int = 0

    @property
    def done(self) -> bool:
        return len(self.logps) == len(self.passage.text)

    def cloze(self) -> Cloze:
        """About the hidden slots of the first block that has any."""
        hidden = tuple(slot for slot in range(len(self.passage.text)) if slot not in self.logps)
        block = next(block for block in self.passage.blocks if hidden[0] in block)
        return Cloze(self.passage, hidden, tuple(slot for slot in hidden if slot in block))

    def judgement(self) -> TextScore:
        logps = [self.logps[slot] for slot in range(len(self.passage.text))]
        return TextScore(logps, self.rows, self.rows, self.positions, greedy=self.greedy)


@dataclass(frozen=True)
class Revealing(Scorer):
    """Abstract: a case ranks the slots that a step may reveal."""

    quota: int = 1  # tokens revealed per step

    def __post_init__(self) -> None:
        if self.quota < 1:
            raise UnmaskError(f"quota={self.quota} does not work: choose 1 or more")

    @abstractmethod
    def rank(self, reply: Reply) -> AtFloat: ...

    def __call__(self, passages: Sequence[Passage], denoiser: Denoiser, seed: int) -> list[TextScore]:
        del seed
        readings = [Reading(passage) for passage in passages]
        while unfinished := [reading for reading in readings if not reading.done]:
            self.step(unfinished, denoiser)
        return [reading.judgement() for reading in readings]

    def step(self, readings: Sequence[Reading], denoiser: Denoiser) -> None:
        left = iter(readings)
        for clozes in portions([reading.cloze() for reading in readings]):
            self._reveal(list(islice(left, len(clozes))), clozes, ask(denoiser, clozes))

    def _reveal(self, readings: Sequence[Reading], clozes: Sequence[Cloze], reply: Reply) -> None:
        logp, best = reply.beliefs.logp(reply.target).tolist(), (reply.beliefs.best[0] == reply.target).tolist()
        chosen = top(self.rank(reply), reply.real, self.quota).nonzero().tolist()
        for reading, positions in zip(readings, reply.computed, strict=True):
            reading.rows += 1
            reading.positions += positions
        for row, place in chosen:
            readings[row].logps[clozes[row].asked[place]] = logp[row][place]
            readings[row].greedy &= best[row][place]


@scorer("duel")
@dataclass(frozen=True)
class Duel(Revealing):
    """log p under an order that the visible tokens alone decide: exact, and a probability (DUEL, arXiv 2603.01367)."""

    order: Literal["confidence", "margin", "entropy", "left-to-right"] = "confidence"  # which token is next

    def rank(self, reply: Reply) -> AtFloat:
        return RANKS[self.order](reply)


@scorer("path")
@dataclass(frozen=True)
class TextPath(Revealing):
    """log p of the text revealed token by token, its own likeliest first: the order looks at the text."""

    def rank(self, reply: Reply) -> AtFloat:
        return reply.beliefs.logp(reply.target)


def written_greedily(passages: Sequence[Passage], denoiser: Denoiser) -> tuple[list[bool], int]:
    """Whether low-confidence remasking, a token per step, writes each text; and the rows that it took to know."""
    readings, way = [Reading(passage) for passage in passages], Duel()
    while undecided := [reading for reading in readings if reading.greedy and not reading.done]:
        way.step(undecided, denoiser)
    return [reading.greedy for reading in readings], sum(reading.rows for reading in readings)
