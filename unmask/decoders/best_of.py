"""Sample n times and take the answer of highest score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from unmask.core import Canvas, Decoder, Denoiser, Frame, Noise, decoder
from unmask.decoders.repeat import check_repeat, repeat, sampled


@decoder("best-of")
@dataclass(frozen=True)
class BestOf:
    n: int = 5  # samples; the i-th is what a run under reseed(seed, i) gives
    inner: Decoder = field(default_factory=sampled)  # what is sampled

    def __post_init__(self) -> None:
        check_repeat(self.n, self.inner)

    def __call__(self, denoiser: Denoiser, canvas: Canvas, noise: Noise) -> Iterator[Frame]:
        return repeat(self.inner, self.n, denoiser, canvas, noise, ranked=True)

    @property
    def choice(self) -> str:
        return "score"

    def resolved(self, length: int) -> BestOf:
        return replace(self, inner=self.inner.resolved(length))

    def rows(self, length: int) -> int:
        return self.n * self.inner.rows(length)
