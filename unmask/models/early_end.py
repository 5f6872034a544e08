"""Early end: once a row's answer has ended, what follows is end-of-text, and the network is not asked about it.

After end-of-text this is approximate, because the published loop goes on denoising there. After a stop string it is
exact for a single path, whose text is cut there anyway. It is decided row by row, so it does not depend on the batch,
and it works under any decoder: ended rows are answered here, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from unmask.core import Beliefs, Canvas, Denoiser, Kept, Wrapper
from unmask.core.shapes import Bool, Columns
from unmask.models.model import Model
from unmask.models.text import HALF

Ended = Callable[[Canvas], Bool[Tensor, " row"]]


class EarlyEnd(Wrapper):
    def __init__(self, inner: Denoiser, eos: Iterable[int], ended: Ended | None = None):
        super().__init__(inner)
        self.eos = torch.tensor(sorted(eos), device=inner.device)
        self.ended = ended or self._after_eos
        self.vocab = 0  # known after the first call; before it no row can have ended

    def __call__(self, canvas: Canvas, at: Columns, kept: Kept | None = None) -> Beliefs:
        ended = self.ended(canvas)
        if not ended.any():
            beliefs = self.inner(canvas, at, kept)
            self.vocab = beliefs.vocab
            return beliefs
        live, shape = (~ended).nonzero()[:, 0], (0, at.shape[1])
        beliefs = Beliefs(lambda places: places, shape, self.vocab, self.mask_id, self.device)
        if len(live):
            beliefs = self.inner(canvas.rows(live), at[live], kept and kept.some(live.tolist()))
        return beliefs.among(live, len(canvas), int(self.eos[0]), self.dtype)

    def _after_eos(self, canvas: Canvas) -> Bool[Tensor, " row"]:
        """Rows whose answer holds an end-of-text token with no mask before it."""
        answer = canvas.tokens[:, canvas.start :]
        masks = canvas.masked.cumsum(1)[:, canvas.start :]
        return (torch.isin(answer, self.eos) & (masks == 0)).any(1)


def after_stop(model: Model, stop: Sequence[str]) -> Ended:
    """Rows whose answer holds a stop string with no mask before it: the text will be cut there, whatever follows."""

    def ended(canvas: Canvas) -> Bool[Tensor, " row"]:
        unfilled = canvas.masked[:, : canvas.start].any(1).tolist()
        answers = canvas.tokens[:, canvas.start :].tolist()
        rows = [not gaps and _is_cut(_written(model, ids), stop) for gaps, ids in zip(unfilled, answers, strict=True)]
        return torch.tensor(rows, device=canvas.tokens.device)

    return ended


def _written(model: Model, ids: Sequence[int]) -> str:
    """The whole characters before the first mask and the first end-of-text."""
    last = {model.denoiser.mask_id, *model.eos}
    end = next((place for place, token in enumerate(ids) if token in last), len(ids))
    return model.text.decode(list(ids[:end])).rstrip(HALF)


def _is_cut(text: str, stop: Sequence[str]) -> bool:
    """Whether it is known where the text is cut: no stop string that began earlier may still be completed."""
    place = min((place for word in stop if (place := text.find(word)) >= 0), default=None)
    return place is not None and not any(word.startswith(text[at:]) for at in range(place) for word in stop)
