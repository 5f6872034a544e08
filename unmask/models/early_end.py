"""Early end: once a row's answer has ended, what follows is end-of-text, and the network is not asked about it.

Approximate, because the published loop goes on denoising there. It is decided row by row, so it does not depend on the
batch, and it works under any decoder: ended rows are answered here, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from unmask.core import Beliefs, Canvas, Denoiser, Kept, Wrapper
from unmask.core.shapes import Bool, Columns


class EarlyEnd(Wrapper):
    def __init__(self, inner: Denoiser, eos: Iterable[int]):
        super().__init__(inner)
        self.eos = torch.tensor(sorted(eos), device=inner.device)
        self.vocab = 0  # known after the first call; before it no row can have ended

    def __call__(self, canvas: Canvas, at: Columns, kept: Kept | None = None) -> Beliefs:
        ended = self._ended(canvas)
        if not ended.any():
            beliefs = self.inner(canvas, at, kept)
            self.vocab = beliefs.vocab
            return beliefs
        live, shape = (~ended).nonzero()[:, 0], (0, at.shape[1])
        beliefs = Beliefs(lambda places: places, shape, self.vocab, self.mask_id, self.device)
        if len(live):
            beliefs = self.inner(canvas.rows(live), at[live], kept and kept.some(live.tolist()))
        return beliefs.among(live, len(canvas), int(self.eos[0]), self.dtype)

    def _ended(self, canvas: Canvas) -> Bool[Tensor, " row"]:
        """Rows whose answer holds an end-of-text token with no mask before it."""
        answer = canvas.tokens[:, canvas.start :]
        masks = canvas.masked.cumsum(1)[:, canvas.start :]
        return (torch.isin(answer, self.eos) & (masks == 0)).any(1)
