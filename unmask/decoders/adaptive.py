"""One path whose steps write as many positions as the model is sure of, and always the surest one.

Easy stretches are written many positions at a time, hard ones one by one (Fast-dLLM, arXiv 2505.22618, and the
entropy bound of Ben-Hamu et al., arXiv 2505.24857). A rule says what a step writes beyond the surest position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch

from unmask.core import Frame, Rows, Scheduled, decoder
from unmask.core.shapes import AtBool, AtFloat, Columns, PerRow
from unmask.decoders.path import check_temperature
from unmask.errors import check_at_least, check_between, check_known
from unmask.policies.remasking import ORDERS, sample, top

Rule = Literal["confidence", "factor", "entropy"]
Write = Callable[[PerRow, Rows, Columns, PerRow], Rows]  # (numbers of the rows, rows, columns, steps) → rows


def advance_by_row(rows: Rows, steps: PerRow, size: int, write: Write) -> Iterator[tuple[Rows, PerRow]]:
    """Fill all masks while every row advances by itself: it has its own block, and its own step counted from `steps`.

    A finished row is no longer computed.
    """
    while len(index := rows.unfinished):
        steps = steps.index_add(0, index, torch.ones_like(index))
        some, at = rows.only(index).advance(size)
        rows = rows.put(index, write(index, some, at, steps[index]))
        yield rows, steps


class SurePath(Scheduled):
    """The base of paths whose steps write what a rule calls sure. Decoders have some of these settings as fields."""

    sure: float
    rule: Rule = "confidence"
    factor: float = 1.0
    budget: float = 0.1
    temperature: float = 0.0

    single_path = commits_only = announces_ends = True

    def __post_init__(self) -> None:
        check_between(0, 1, sure=self.sure)
        check_temperature(self.temperature)
        check_known(get_args(Rule), rule=self.rule)
        check_at_least(0, factor=self.factor, budget=self.budget)

    def __call__(self, rows: Rows) -> Iterator[Frame]:
        unfinished = rows.unfinished
        for written, steps in self.walk(rows, torch.zeros_like(rows.group)):
            frame, before, unfinished = written.frame(int(steps.max())), unfinished, written.unfinished
            if 0 < len(unfinished) < len(before):
                frame = replace(frame, ended=frame.rows(before[~torch.isin(before, unfinished)]))
            yield frame

    def walk(self, rows: Rows, steps: PerRow) -> Iterator[tuple[Rows, PerRow]]:
        """Fill all masks; yield the rows after every step and the number of each row's last step."""
        return advance_by_row(rows, steps, rows.plan(self.block).block, self._write)

    def _write(self, index: PerRow, rows: Rows, at: Columns, step: PerRow) -> Rows:
        draft = sample(rows, at, step, self.temperature)
        masked, rank = draft.fillable, ORDERS["entropy" if self.rule == "entropy" else "confidence"](draft)
        return draft.write(top(rank, masked, self._count(rank, masked)))

    def _count(self, rank: AtFloat, masked: AtBool) -> torch.Tensor:
        """Return how many positions a step writes, (row, 1)."""
        ranked, place = rank.masked_fill(~masked, -torch.inf).sort(dim=1, descending=True, stable=True)
        if self.rule == "confidence":
            within = ranked.exp() >= self.sure
        elif self.rule == "factor":
            number = torch.ones_like(ranked).cumsum(1)
            within = (number + 1) * (1 - ranked.exp()) < self.factor
        else:
            within = (-ranked).cumsum(1) <= self.budget
        return (within & masked.gather(1, place)).sum(1, keepdim=True).clamp(min=1)

    def max_forward_passes(self, length: int) -> int:
        return length  # a step writes at least one position


@decoder("adaptive")
@dataclass(frozen=True)
class Adaptive(SurePath):
    sure: float = 0.98  # rule confidence: write drafts of at least this probability
    rule: Rule = "confidence"  # what is written beyond the surest position
    factor: float = 1.0  # rule factor: write n drafts while (n + 1)(1 − p) of the least sure one is below this
    budget: float = 0.1  # rule entropy: write in order of entropy while its sum, in nats, is at most this
    temperature: float = 0.0  # 0 takes the likeliest token
    block: int | None = None  # masks per block; 32, or all of them when there are fewer


@decoder("threshold", "confidence-threshold")
@dataclass(frozen=True)
class Threshold(SurePath):
    """Write every position the model is sure of, and at least the surest, at each step (Fast-dLLM)."""

    sure: float = 0.9  # a position whose likeliest token has at least this probability is written at once
    block: int | None = None  # masks per block; 32, or all of them when there are fewer
