"""Single paths: each step drafts every masked position of the block and writes those that an order puts first.

This is LLaDA's published loop (arXiv 2502.09992); its decoders differ only in the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from unmask.core import Frame, Rows, Scheduled, decoder
from unmask.errors import UnmaskError, check_at_least
from unmask.policies.remasking import ORDERS, sample, top


@dataclass(frozen=True)
class SinglePath(Scheduled):
    """The base of decoders that differ only in their `order`."""

    block: int | None = None  # masks per block; 32, or all of them when there are fewer
    steps: int | None = None  # total steps; half the masks, or all of them for block 1
    temperature: float = 0.0  # 0 takes the likeliest token

    order: ClassVar[str]
    single_path = commits_only = ends_together = True

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def __call__(self, rows: Rows) -> Iterator[Frame]:
        for step in rows.plan(self.block, self.steps):
            rows = rows.enter(step.span)
            draft = sample(rows, rows.open(step.span, step.open), step.number, self.temperature)
            rows = draft.write(top(ORDERS[self.order](draft), draft.masked, step.quota))
            yield rows.frame(step.number)


@decoder("low-confidence")
class LowConfidence(SinglePath):
    """Write first where the model is most confident (LLaDA's low-confidence remasking)."""

    order = "confidence"


@decoder("random")
class Random(SinglePath):
    """Write in uniformly random order (LLaDA's random remasking)."""

    order = "random"


@decoder("margin")
class Margin(SinglePath):
    """Write first where the likeliest token is furthest ahead of the second (Kim et al., arXiv 2502.06768)."""

    order = "margin"


@decoder("entropy")
class Entropy(SinglePath):
    """Write first where the model's distribution has the least entropy (Dream's 'entropy')."""

    order = "entropy"


@decoder("left-to-right", "ar")
@dataclass(frozen=True)
class LeftToRight(SinglePath):
    """Write from left to right: with its default block of 1 this is the paper's AR."""

    block: int | None = 1

    order = "left-to-right"


def check_temperature(temperature: float) -> None:
    check_at_least(0, temperature=temperature)
    if temperature == float("inf"):
        raise UnmaskError("temperature must be finite, got inf")
