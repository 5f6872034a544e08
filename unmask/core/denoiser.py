"""The interface to which every network is adapted before a decoder sees it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch

from unmask.core.beliefs import Beliefs
from unmask.core.canvas import Canvas
from unmask.core.kept import Kept
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

    @property
    def refresh(self) -> int | None:
        """Steps for which what it keeps of a row is good; None where it keeps nothing."""
        ...

    def __call__(self, canvas: Canvas, at: Columns, kept: Kept | None = None) -> Beliefs:
        """Beliefs at the columns `at` of each row. A model without a cache ignores `kept`."""
        ...


class Wrapper:
    """A denoiser around another one, with the same properties."""

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
    def refresh(self) -> int | None:
        return self.inner.refresh

    @property
    def block_size(self) -> int | None:
        return block_size(self.inner)


def block_size(denoiser: Denoiser) -> int | None:
    """Positions per block of a block-causal model, which says so in `block_size`; None where all positions see all."""
    return getattr(denoiser, "block_size", None)
