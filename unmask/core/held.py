"""A held denoiser as a search uses it: rows are forked and pruned, and each still knows where it came from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unmask.core.beliefs import Beliefs
from unmask.core.canvas import Canvas
from unmask.core.denoiser import Denoiser
from unmask.core.shapes import Columns, Int, Rows


@dataclass(frozen=True)
class Held:
    """A held denoiser, and for each row of now the row it came from when it was held."""

    denoiser: Denoiser
    source: Rows

    @classmethod
    def of(cls, denoiser: Denoiser, canvas: Canvas, fresh: Columns) -> Held:
        return cls(denoiser, torch.arange(len(canvas), device=fresh.device)).hold(canvas, fresh)

    def __call__(self, canvas: Canvas, at: Columns) -> Beliefs:
        return self.denoiser(replace(canvas, source=self.source), at)

    def hold(self, canvas: Canvas, fresh: Columns) -> Held:
        """Held again, at rows of now."""
        inner = self.denoiser.hold(replace(canvas, source=self.source), fresh)
        return Held(inner, torch.arange(len(canvas), device=fresh.device))

    def rows(self, index: Int[Tensor, " new"]) -> Held:
        """Row i of the result came from where row index[i] did."""
        return replace(self, source=self.source[index])
