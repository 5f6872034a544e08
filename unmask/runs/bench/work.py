"""What a contender had the network compute, counted at the network's door."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from unmask import plain
from unmask.core import Beliefs, Canvas, Denoiser, Wrapper
from unmask.core.shapes import Columns
from unmask.models.transformer import Shape
from unmask.runs.bench.flops import head_flops, trunk_flops


@dataclass
class Work:
    calls: int = 0
    rows: int = 0  # really computed: identical ones once
    positions: int | Tensor = 0  # of those rows, padding apart
    looks: int | Tensor = 0  # pairs of positions that attention compares
    asked: int = 0  # positions whose logits were taken

    def flops(self, shape: Shape) -> int:
        positions, looks = int(self.positions), int(self.looks)
        return trunk_flops(shape, positions, looks) + head_flops(shape, self.asked)


class Tally(Wrapper):
    """A denoiser that keeps count."""

    def __init__(self, inner: Denoiser, work: Work | None = None):
        super().__init__(inner)
        self.work = work or Work()

    def __call__(self, canvas: Canvas, at: Columns) -> Beliefs:
        beliefs = self.inner(canvas, at)
        work, lengths = self.work, canvas.width - canvas.pad
        work.calls += 1
        work.rows += len(canvas)
        work.asked += at.numel()
        computed = lengths if beliefs.computed is None else beliefs.computed
        work.positions = work.positions + computed.sum()
        work.looks = work.looks + (computed * lengths).sum()
        return beliefs

    def hold(self, canvas: Canvas, fresh: Columns) -> Denoiser:
        return Tally(self.inner.hold(canvas, fresh), self.work)


def tallied(forward: plain.Forward, work: Work) -> plain.Forward:
    """The same for the published loops, which take logits at every position."""

    def counted(tokens: Tensor) -> Tensor:
        work.calls += 1
        work.rows += len(tokens)
        work.positions += tokens.numel()
        work.looks += tokens.numel() * tokens.shape[1]
        work.asked += tokens.numel()
        return forward(tokens)

    return counted
