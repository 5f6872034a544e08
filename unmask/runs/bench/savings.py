"""Exact savings that can be switched off: what one is worth is how much slower the search is without it."""

from __future__ import annotations

import torch
from torch import Tensor

from unmask.core import Beliefs, Canvas, Denoiser, Wrapper
from unmask.core.beliefs import CPU_CHUNK
from unmask.core.shapes import Columns


class WholeHead(Wrapper):
    """Takes logits at every position, as the published loops do, and keeps those asked for."""

    def __call__(self, canvas: Canvas, at: Columns) -> Beliefs:
        columns = torch.arange(canvas.width, device=at.device).expand(len(canvas), -1)
        every = self.inner(canvas, columns)
        row = torch.arange(len(canvas), device=at.device)[:, None] * canvas.width
        wanted = (row + at).flatten()  # ascending, as the columns of `at` are
        chunks = torch.arange(columns.numel(), device=at.device).split(max(1, CPU_CHUNK // every.vocab))
        kept = torch.cat([_kept(every, places, wanted) for places in chunks])
        return Beliefs(kept.__getitem__, (at.shape[0], at.shape[1]), every.vocab, every.mask_id, every.device)

    def hold(self, canvas: Canvas, fresh: Columns) -> Denoiser:
        del canvas, fresh
        return self


def _kept(every: Beliefs, places: Tensor, wanted: Tensor) -> Tensor:
    logits = every.read(places)
    mine = wanted[(wanted >= places[0]) & (wanted <= places[-1])]
    return logits[mine - places[0]]
