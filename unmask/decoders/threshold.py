"""Write every position the model is sure of, and at least the surest, at each step (Fast-dLLM, arXiv 2505.22618)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from unmask.core import Frame, Rows, Schedule, decoder
from unmask.decoders.adaptive import Adaptive
from unmask.decoders.path import check_sure


@decoder("threshold", "confidence-threshold")
@dataclass(frozen=True)
class Threshold:
    sure: float = 0.9  # a position whose likeliest token has at least this probability is written at once
    block: int | None = None  # masks per block; 32, or all of them when there are fewer

    def __post_init__(self) -> None:
        check_sure(self.sure)

    def __call__(self, rows: Rows) -> Iterator[Frame]:
        return Adaptive(sure=self.sure, block=self.block)(rows)

    @property
    def choice(self) -> str:
        return "score"

    def resolved(self, length: int) -> Threshold:
        return replace(self, block=Schedule.plan(length, self.block).block)

    def rows(self, length: int) -> int:
        return length
