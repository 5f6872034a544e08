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
        live = (~ended).nonzero()[:, 0]
        live_beliefs = None
        if len(live):
            live_beliefs = self.inner(canvas.rows(live), at[live], kept and kept.some(live.tolist()))
        place = torch.zeros_like(canvas.pad).index_copy(0, live, torch.arange(len(live), device=self.device))
        width, vocab, first = at.shape[1], self.vocab, int(self.eos[0])

        def read(places: Tensor) -> Tensor:
            logits = torch.full((len(places), vocab), -torch.inf, dtype=self.dtype, device=self.device)
            logits[:, first] = 0.0
            row, column = places // width, places % width
            going = (~ended[row]).nonzero()[:, 0]
            if live_beliefs is not None and len(going):
                logits[going] = live_beliefs.read(place[row[going]] * width + column[going]).to(self.dtype)
            return logits

        return Beliefs(read, (len(canvas), width), vocab, self.mask_id, self.device)

    def _ended(self, canvas: Canvas) -> Bool[Tensor, " row"]:
        """Rows whose answer holds an end-of-text token with no mask before it."""
        answer = canvas.tokens[:, canvas.start :]
        masks = canvas.masked.cumsum(1)[:, canvas.start :]
        return (torch.isin(answer, self.eos) & (masks == 0)).any(1)
