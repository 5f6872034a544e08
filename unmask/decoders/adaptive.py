"""One path whose steps write as many positions as the model is sure of, and always the surest one.

Easy stretches are written many positions at a time, hard ones one by one (Fast-dLLM, arXiv 2505.22618, and the
entropy bound of Ben-Hamu et al., arXiv 2505.24857). A rule says what a step writes beyond the surest position. Write every position the model is sure of, and at least the surest, at each step (Fast-dLLM, arXiv 2505.22618)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch

from unmask.core import Decoder, Frame, Rows, Schedule, decoder
from unmask.core.shapes import AtBool, AtFloat, PerRow
from unmask.decoders.path import check_temperature
from unmask.errors import check_at_least, check_between, check_known
from unmask.policies.draft import Draft, confidence, entropy, sample, top

Rule = Literal["confidence", "factor", "entropy"]


@decoder("adaptive")
@dataclass(frozen=True)
class Adaptive(Decoder):
    sure: float = 0.98  # rule confidence: write drafts of at least this probability
    rule: Rule = "confidence"  # what is written beyond the surest position
    factor: float = 1.0  # rule factor: write n drafts while (n + 1)(1 − p) of the least sure one is below this
    budget: float = 0.1  # rule entropy: write in order of entropy while its sum, in nats, is at most this
    temperature: float = 0.0  # 0 takes the likeliest token
    block: int | None = None  # masks per block; 32, or all of them when there are fewer

    single_path = commits_only = announces_ends = True

    def __post_init__(self) -> None:
        check_between(0, 1, sure=self.sure)
        check_temperature(self.temperature)
        check_known(get_args(Rule), rule=self.rule)
        check_at_least(0, factor=self.factor, budget=self.budget)

    def __call__(self, rows: Rows) -> Iterator[Frame]:
        going = rows.unfinished
        for written, steps in self.walk(rows, torch.zeros_like(rows.group)):
            frame, before, going = written.frame(int(steps.max())), going, written.unfinished
            if 0 < len(going) < len(before):
                frame = replace(frame, ended=frame.rows(before[~torch.isin(before, going)]))
            yield frame

    def walk(self, rows: Rows, steps: PerRow) -> Iterator[tuple[Rows, PerRow]]:
        """Fill all masks. Every row advances by itself: it has its own block and its own step, counted from `steps`."""
        size = rows.plan(self.block).block
        while len(unfinished := rows.unfinished):
            steps = steps.index_add(0, unfinished, torch.ones_like(unfinished))
            some, at = rows.only(unfinished).advance(size)
            draft = sample(some, at, steps[unfinished], self.temperature)
            rows = rows.put(unfinished, draft.write(self._written(draft)))
            yield rows, steps

    def _written(self, draft: Draft) -> AtBool:
        masked = draft.masked
        masked[:, 1:] &= draft.at[:, 1:] != draft.at[:, :-1]  # a short block repeats its last column
        rank = entropy(draft) if self.rule == "entropy" else confidence(draft)
        return top(rank, masked, self._count(rank, masked))

    def _count(self, rank: AtFloat, masked: AtBool) -> torch.Tensor:
        """How many positions a step writes, (row, 1)."""
        ranked, place = rank.masked_fill(~masked, -torch.inf).sort(dim=1, descending=True, stable=True)
        if self.rule == "confidence":
            within = ranked.exp() >= self.sure
        elif self.rule == "factor":
            number = torch.ones_like(ranked).cumsum(1)
            within = (number + 1) * (1 - ranked.exp()) < self.factor
        else:
            within = (-ranked).cumsum(1) <= self.budget
        return (within & masked.gather(1, place)).sum(1, keepdim=True).clamp(min=1)

    def resolved(self, length: int) -> Adaptive:
        return replace(self, block=Schedule.plan(length, self.block).block)

    def max_forward_passes(self, length: int) -> int:
        """At most: a step writes at least one position."""
        return length


@decoder("threshold", "confidence-threshold")
@dataclass(frozen=True)
class Threshold(Decoder):
    sure: float = 0.9  # a position whose likeliest token has at least this probability is written at once
    block: int | None = None  # masks per block; 32, or all of them when there are fewer

    single_path = commits_only = announces_ends = True

    def __post_init__(self) -> None:
        check_between(0, 1, sure=self.sure)

    def __call__(self, rows: Rows) -> Iterator[Frame]:
        return Adaptive(sure=self.sure, block=self.block)(rows)

    def resolved(self, length: int) -> Threshold:
        return replace(self, block=Schedule.plan(length, self.block).block)

    def max_forward_passes(self, length: int) -> int:
        return length
