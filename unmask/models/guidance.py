"""Classifier-free guidance (LLaDA's `cfg_scale`): each row is also asked with everything that was given masked."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from unmask.core import Beliefs, Canvas, Denoiser, Wrapper
from unmask.core.shapes import Bool, Columns


class Guided(Wrapper):
    """Logits un + (scale + 1)(cond − un). Twice the rows: stand it outside the meter."""

    def __init__(self, inner: Denoiser, given: Bool[Tensor, "problem pos"], scale: float, held: int | None = None):
        super().__init__(inner)
        self.given, self.scale = given, scale
        self.held = held  # rows of the canvas that was held, where one was

    def __call__(self, canvas: Canvas, at: Columns) -> Beliefs:
        both = self.inner(self._doubled(canvas), torch.cat([at, at]))
        below = len(canvas) * at.shape[1]

        def read(places: Tensor) -> Tensor:
            given, not_given = both.read(places), both.read(places + below)
            guided = not_given + (self.scale + 1) * (given - not_given)
            # Where either says "never", the difference says nothing.
            return torch.where(given.isneginf() | not_given.isneginf(), given, guided)

        return replace(both, read=read, shape=(len(canvas), at.shape[1]))

    def hold(self, canvas: Canvas, fresh: Columns) -> Guided:
        inner = self.inner.hold(self._doubled(canvas), torch.cat([fresh, fresh]))
        return Guided(inner, self.given, self.scale, held=len(canvas))

    def _doubled(self, canvas: Canvas) -> Canvas:
        rows = torch.arange(len(canvas), device=canvas.tokens.device)
        both = canvas.rows(torch.cat([rows, rows]))
        hidden = torch.cat([torch.zeros_like(canvas.real), self.given[canvas.problem]])
        source = torch.cat([canvas.source, canvas.source + (self.held or len(canvas))])
        return replace(both, tokens=both.tokens.masked_fill(hidden, self.mask_id), source=source)
