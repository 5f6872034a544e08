"""Classifier-free guidance (LLaDA's `cfg_scale`): each row is also asked with everything that was given masked."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from unmask.core import Beliefs, Canvas, Denoiser, Kept, Wrapper
from unmask.core.shapes import Bool, Columns


class Guided(Wrapper):
    """Logits un + (scale + 1)(cond − un), for twice the rows."""

    def __init__(self, inner: Denoiser, given: Bool[Tensor, "problem pos"], scale: float):
        super().__init__(inner)
        self.given, self.scale = given, scale

    def __call__(self, canvas: Canvas, at: Columns, kept: Kept | None = None) -> Beliefs:
        both = self.inner(self._doubled(canvas), torch.cat([at, at]), kept and kept.derive("guided", self._both))
        half = len(canvas) * at.shape[1]

        def read(places: Tensor) -> Tensor:
            cond, uncond = both.read(places), both.read(places + half)
            guided = uncond + (self.scale + 1) * (cond - uncond)
            # Where either is -inf, the difference says nothing.
            return torch.where(cond.isneginf() | uncond.isneginf(), cond, guided)

        return replace(both, read=read, shape=(len(canvas), at.shape[1]), computed=None)

    def _doubled(self, canvas: Canvas) -> Canvas:
        """Every row as it is, then every row with what was given masked."""
        rows = torch.arange(len(canvas), device=canvas.tokens.device)
        both = canvas.rows(torch.cat([rows, rows]))
        hidden = torch.cat([torch.zeros_like(canvas.real), self.given[canvas.problem]])
        return replace(both, tokens=both.tokens.masked_fill(hidden, self.mask_id))

    def _both(self, kept: Kept) -> Kept:
        """Place i as places 2i and 2i + 1."""
        places = torch.cat([2 * kept.places, 2 * kept.places + 1])
        rows = torch.arange(len(kept.snapshot), device=places.device)
        snapshot = self._doubled(kept.snapshot).rows(torch.stack([rows, rows + len(rows)], dim=1).flatten())
        window = torch.cat([kept.window, kept.window])
        return replace(kept, snapshot=snapshot, places=places, window=window, scale=2)
