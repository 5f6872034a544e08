"""Sample n times and take the commonest answer (self-consistency, arXiv 2203.11171)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from unmask.core import Canvas, Decoder, Denoiser, Frame, Noise, decoder
from unmask.decoders.repeat import check_repeat, repeat, sampled
from unmask.errors import UnmaskError, nearest


@decoder("vote")
@dataclass(frozen=True)
class Vote:
    n: int = 5  # samples; the i-th is what a run under reseed(seed, i) gives
    inner: Decoder = field(default_factory=sampled)  # what is sampled
    choice: Literal["majority", "weighted"] = "majority"  # weighted: by the probability of each sample

    def __post_init__(self) -> None:
        check_repeat(self.n, self.inner)
        if self.choice not in ("majority", "weighted"):
            raise UnmaskError(f"choice={self.choice!r} is no vote: {nearest(self.choice, ('majority', 'weighted'))}")

    def __call__(self, denoiser: Denoiser, canvas: Canvas, noise: Noise) -> Iterator[Frame]:
        return repeat(self.inner, self.n, denoiser, canvas, noise)

    def resolved(self, length: int) -> Vote:
        return replace(self, inner=self.inner.resolved(length))

    def rows(self, length: int) -> int:
        return self.n * self.inner.rows(length)
