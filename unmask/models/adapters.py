"""Adapters round a denoiser: they take in a network's conventions, so that decoders see one meaning."""

from __future__ import annotations

import torch
from torch import Tensor

from unmask.core import Beliefs, Canvas, Denoiser, Wrapper
from unmask.core.shapes import Columns, Int


class Shifted(Wrapper):
    """Undoes a shift of one: the network's logits at position i - 1 are about position i.

    A row's first token has nothing before it: like the published loop, it is read at its own position.
    """

    def __call__(self, canvas: Canvas, at: Columns) -> Beliefs:
        return self.inner(canvas, before(canvas, at))

    def hold(self, canvas: Canvas, fresh: Columns) -> Denoiser:
        """What is read one position earlier must be fresh too."""
        return Shifted(self.inner.hold(canvas, union(canvas, fresh, before(canvas, fresh))))


def before(canvas: Canvas, at: Columns) -> Columns:
    return torch.maximum(at - 1, canvas.pad[:, None])


def union(canvas: Canvas, one: Columns, other: Columns) -> Int[Tensor, "row both"]:
    """Columns in either, left to right. Rows that have fewer repeat their last."""
    marked = torch.zeros(canvas.tokens.shape, dtype=torch.bool, device=one.device)
    marked = marked.scatter(1, torch.cat([one, other], dim=1), True)
    count = marked.sum(1, keepdim=True)
    ranked = marked.to(torch.int8).sort(dim=1, descending=True, stable=True).indices
    most = torch.arange(int(count.max()), device=one.device)
    return ranked.gather(1, torch.minimum(most, count - 1))
