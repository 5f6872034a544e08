"""Ways that begin with a text all hidden and reveal it step by step: log p of each token when its turn comes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from unmask.core import Denoiser
from unmask.core.shapes import AtFloat
from unmask.errors import UnmaskError
from unmask.policies.order import top
from unmask.policies.passage import Cloze, Passage, Reply, ask, portions
from unmask.policies.way import Judgement, Way, way

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

    def judgement(self) -> Judgement:
        logps = [self.logps[slot] for slot in range(len(self.passage.text))]
        return Judgement(logps, self.rows, self.rows, self.positions, greedy=self.greedy)


@dataclass(frozen=True)
class Revealing(Way):
    """Abstract: a case ranks the slots that a step may reveal."""

    quota: int = 1  # tokens revealed per step

    def __post_init__(self) -> None:
        if self.quota < 1:
            raise UnmaskError(f"quota={self.quota} does not work: choose 1 or more")

    @abstractmethod
    def rank(self, reply: Reply) -> AtFloat: ...

    def __call__(self, passages: Sequence[Passage], denoiser: Denoiser, seed: int) -> list[Judgement]:
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


@way("duel")
@dataclass(frozen=True)
class Duel(Revealing):
    """log p under an order that the visible tokens alone decide: exact, and a probability (DUEL, arXiv 2603.01367)."""

    order: Literal["confidence", "margin", "entropy", "left-to-right"] = "confidence"  # which token is next

    def rank(self, reply: Reply) -> AtFloat:
        return RANKS[self.order](reply)


@way("path")
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
