"""The interface of every model, and the wrappers that count its work and record its calls."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch

from unmask.core.beliefs import Beliefs
from unmask.core.cache import CacheView, distinct
from unmask.core.canvas import Canvas
from unmask.core.shapes import Columns


@runtime_checkable
class Denoiser(Protocol):
    """Beliefs at column i are about the token at column i, and never about the mask token."""

    @property
    def mask_id(self) -> int: ...

    @property
    def context(self) -> int: ...  # the longest row, in positions, that the model takes

    @property
    def device(self) -> torch.device: ...

    @property
    def dtype(self) -> torch.dtype: ...  # of log p: float32, or float64 where the network computes in it

    @property
    def vocab(self) -> int: ...  # the number of tokens that it has logits for

    @property
    def block_size(self) -> int | None: ...  # positions per block of a block-causal model; None under full attention

    @property
    def refresh(self) -> int | None: ...  # steps for which cached keys and values are used; None without a cache

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        """Return the beliefs at the columns `at` of each row. A model without a cache ignores `cache`."""
        ...


def _of_inner(name: str) -> Any:
    return property(attrgetter(f"inner.{name}"))


class Wrapper:
    """A denoiser around another one, with the same properties. The base of everything that adds to a model."""

    mask_id: int = _of_inner("mask_id")
    context: int = _of_inner("context")
    device: torch.device = _of_inner("device")
    dtype: torch.dtype = _of_inner("dtype")
    vocab: int = _of_inner("vocab")
    block_size: int | None = _of_inner("block_size")

    def __init__(self, inner: Denoiser):
        self.inner = inner

    @property
    def refresh(self) -> int | None:
        return self.inner.refresh


FEW = 8  # up to so many rows a cached step takes as long as one row: the weights have to be read either way


@dataclass(frozen=True)
class Cost:
    """The cost of one problem, except `calls`, `batch_seconds` and `memory`, which its batch shares."""

    calls: int  # calls of the network
    forward_passes: int  # sequences passed through the network: the paper's NFE divided by L
    computed: int  # forward passes computed: identical ones of a problem are computed once
    positions: int  # positions computed, without padding
    seconds: float  # its share of the batch's seconds
    memory: int  # peak bytes allocated on the device; 0 where the device does not report it
    batch_seconds: float = 0.0  # seconds of the whole batch
    checks: int = 0  # texts that were checked
    check_seconds: float = 0.0  # seconds that the checks took


class Meter(Wrapper):
    """Counts a denoiser's work by problem, and computes identical rows of one problem once.

    On a CPU every call looks for equal rows. Elsewhere looking waits for the device, so it is done when rows enter a
    block, after a fork, and for as long as it finds some, since rows differ after their own draws. A few rows with a
    cache take the time of one and are not compared.
    """

    def __init__(self, inner: Denoiser, problems: int):
        super().__init__(inner)
        # (asked, computed, positions) by problem, on the device so that counting never waits for it
        self.counts = torch.zeros(3, problems, dtype=torch.long, device=inner.device)
        self.calls = 0
        self._repeats = 0, False  # a generation of the cache, and whether equal rows were found in it last time

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        self.calls += 1
        self.counts[0].index_add_(0, canvas.problem, torch.ones_like(canvas.problem))
        if not self._may_repeat(canvas, cache):
            return self._counted(canvas, at, cache)
        # Equal rows may use different cached keys and values.
        apart = cache is not None and self.refresh is not None
        first, copies = distinct(canvas, torch.cat([cache.entries[:, None], at], dim=1) if cache and apart else at)
        if cache is not None:
            self._repeats = cache.generation, len(first) < len(canvas) and (not apart or len(canvas) > FEW)
        if len(first) == len(canvas):
            return self._counted(canvas, at, cache)
        index = torch.tensor(first, device=self.device)
        beliefs = self._counted(canvas.rows(index), at[index], cache and cache.take_listed(first))
        return beliefs.rows(torch.tensor(copies, device=self.device))

    def _may_repeat(self, canvas: Canvas, cache: CacheView | None) -> bool:
        if reads_freely(self.device):
            return True
        if cache is None:
            return False
        return not cache.steady or self._repeats != (cache.generation, False) or len(canvas) > cache.rows * cache.scale

    def _counted(self, canvas: Canvas, at: Columns, cache: CacheView | None) -> Beliefs:
        beliefs = self.inner(canvas, at, cache)
        positions = canvas.width - canvas.pad if beliefs.computed is None else beliefs.computed
        self.counts[1:].index_add_(1, canvas.problem, torch.stack([torch.ones_like(positions), positions]))
        return beliefs


def reads_freely(device: torch.device) -> bool:
    """Return whether the host can read tensors without waiting for the device."""
    return device.type == "cpu"


class Exchange(NamedTuple):
    canvas: Canvas
    at: Columns
    beliefs: Beliefs


class Listener(Wrapper):
    """Records the calls of a model until they are taken."""

    exchanges: tuple[Exchange, ...] = ()

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        beliefs = self.inner(canvas, at, cache)
        self.exchanges = (*self.exchanges, Exchange(canvas, at, beliefs))
        return beliefs

    def take(self) -> tuple[Exchange, ...]:
        exchanges, self.exchanges = self.exchanges, ()
        return exchanges
