"""The one meaning every network is given before a decoder sees it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch

from unmask.core.beliefs import Beliefs
from unmask.core.canvas import Canvas
from unmask.core.shapes import Columns


@runtime_checkable
class Denoiser(Protocol):
    """Beliefs at column i are about the token at column i, and never about the mask token."""

    @property
    def mask_id(self) -> int: ...

    @property
    def context(self) -> int:
        """The longest row, in positions, that the model takes."""
        ...

    @property
    def device(self) -> torch.device: ...

    @property
    def dtype(self) -> torch.dtype:
        """Of the log-probabilities: float32, or float64 where the network computes in it."""
        ...

    def __call__(self, canvas: Canvas, at: Columns) -> Beliefs: ...

    def hold(self, canvas: Canvas, fresh: Columns) -> Denoiser:
        """A denoiser for canvases that differ from this one in `fresh` columns only, and asked about those only.

        Each row of such a canvas says by its `source` which row of this one it came from; rows may be forked, dropped
        and reordered (`Held` keeps count). `fresh` may name a column twice. A plain model returns itself; a caching one
        keeps what it computed outside `fresh`. What is returned can be held again, with more columns fresh: what was
        kept before then stays kept.
        """
        ...


class Wrapper:
    """A denoiser round another one: it says of itself what that one says."""

    def __init__(self, inner: Denoiser):
        self.inner = inner

    @property
    def mask_id(self) -> int:
        return self.inner.mask_id

    @property
    def context(self) -> int:
        return self.inner.context

    @property
    def device(self) -> torch.device:
        return self.inner.device

    @property
    def dtype(self) -> torch.dtype:
        return self.inner.dtype

    @property
    def lasts(self) -> int | None:
        return lasts(self.inner)


def lasts(denoiser: Denoiser) -> int | None:
    """Steps that what is held is good for, where a denoiser keeps something and says so; None: it keeps nothing."""
    return getattr(denoiser, "lasts", None)
