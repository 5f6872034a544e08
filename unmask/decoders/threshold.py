"""Write every position the model is sure of, at least one each step (Fast-dLLM, arXiv 2505.22618)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from unmask.core import Canvas, Denoiser, Frame, Noise, Schedule, decoder, lasts
from unmask.decoders.path import check_sure
from unmask.policies.order import foremost


@decoder("threshold", "confidence-threshold")
@dataclass(frozen=True)
class Threshold:
    sure: float = 0.9  # a position whose likeliest token has at least this probability is written at once
    block: int | None = None  # masks a block; 32, or all of them when there are fewer

    def __post_init__(self) -> None:
        check_sure(self.sure)

    def __call__(self, denoiser: Denoiser, canvas: Canvas, noise: Noise) -> Iterator[Frame]:
        del noise
        holes = canvas.holes
        schedule = Schedule.plan(holes.shape[1], self.block)
        steps = torch.zeros_like(canvas.pad)[:, None]  # a row counts its own: others may take longer
        for block in range(len(schedule.quotas)):
            at = holes[:, schedule.holes(block)]
            local, left = denoiser, 0
            while len(going := canvas.masked_at(at).any(1).nonzero()[:, 0]):
                if left == 0:
                    local, left = denoiser.hold(canvas, fresh=at), lasts(denoiser) or at.shape[1]
                left -= 1
                steps[going] += 1
                canvas = canvas.replace_rows(going, self._step(local, canvas.rows(going), at[going], steps[going]))
                yield Frame(canvas, canvas.sum_logp(holes), int(steps.max()))

    def _step(self, denoiser: Denoiser, canvas: Canvas, at: torch.Tensor, steps: torch.Tensor) -> Canvas:
        token, logp = denoiser(canvas, at).best
        masked = canvas.masked_at(at)
        written = foremost(logp, masked, 1) | (masked & (logp.exp() >= self.sure))
        return canvas.write(at, token, written, steps, logp)

    @property
    def choice(self) -> str:
        return "score"

    def resolved(self, length: int) -> Threshold:
        return replace(self, block=Schedule.plan(length, self.block).block)

    def rows(self, length: int) -> int:
        return length
