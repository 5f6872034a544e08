"""Write every position the model is sure of, and at least the surest, at each step (Fast-dLLM, arXiv 2505.22618)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from unmask.core import Frame, Rows, Schedule, decoder
from unmask.decoders.path import check_sure
from unmask.policies.draft import sample
from unmask.policies.order import top


@decoder("threshold", "confidence-threshold")
@dataclass(frozen=True)
class Threshold:
    sure: float = 0.9  # a position whose likeliest token has at least this probability is written at once
    block: int | None = None  # masks per block; 32, or all of them when there are fewer

    def __post_init__(self) -> None:
        check_sure(self.sure)

    def __call__(self, rows: Rows) -> Iterator[Frame]:
        """Every row advances by itself: it has its own block and its own step."""
        size = Schedule.plan(rows.length, self.block).block
        steps = torch.zeros_like(rows.group)
        while len(unfinished := rows.unfinished):
            steps[unfinished] += 1
            some, at = rows.only(unfinished).advance(size)
            draft = sample(some, at, steps[unfinished], temperature=0.0)
            sure = draft.masked & (draft.logp.exp() >= self.sure)
            rows = rows.put(unfinished, draft.write(sure | top(draft.logp, draft.masked, 1)))
            yield rows.frame(int(steps.max()))

    @property
    def choice(self) -> str:
        return "score"

    def resolved(self, length: int) -> Threshold:
        return replace(self, block=Schedule.plan(length, self.block).block)

    def rows(self, length: int) -> int:
        return length
