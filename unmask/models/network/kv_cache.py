"""The approximate KV caches of Fast-dLLM (arXiv 2505.22618): a step computes the block, not the whole row.

They are approximate because attention is bidirectional: the cached keys and values would change with every token that
is written. One full forward pass at the start of a block fills the cache and answers the first step. `prefix` caches
what precedes the block, `dual` everything outside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from unmask.core import Beliefs, CacheView, Canvas, Denoiser, Wrapper
from unmask.core.shapes import Columns, Float, Int, PerRow
from unmask.errors import UnmaskError, check_at_least
from unmask.models.network.cuda_graphs import Window
from unmask.models.network.exact_cache import ExactlyCached
from unmask.models.network.network import Bucket, Network, buckets, chunks, in_order, take, whole_buckets
from unmask.models.network.transformer import lines, select
from unmask.registry import ADDED, Registry

EXACT = "exact"


class KVCache(Protocol):
    """A kind of KV cache that users choose by name."""

    def wrap(self, denoiser: Denoiser, name: str) -> Denoiser:
        """Return the denoiser of model `name` with this cache; refuse a model that does not allow it."""
        ...


kv_cache: Registry[KVCache] = Registry("cache")


@kv_cache("none")
@dataclass(frozen=True)
class NoCache:
    """Every step is a forward pass of whole rows."""

    def wrap(self, denoiser: Denoiser, name: str) -> Denoiser:
        del name
        return denoiser


@kv_cache(EXACT)
@dataclass(frozen=True)
class ExactCache:
    """The cache of block-causal models, which is on by default (exact_cache.py)."""

    def wrap(self, denoiser: Denoiser, name: str) -> Denoiser:
        if not _network(denoiser, name).packed:
            raise UnmaskError(f"{name} is not block-causal, so no cache of it is exact: use cache='prefix' or 'dual'")
        return ExactlyCached(_network(denoiser, name))


@kv_cache("dual")
@dataclass(frozen=True)
class DualCache:
    """Everything outside the block is cached."""

    # steps after which the cache is filled again; none: at the next block
    refresh: int | None = field(default=None, metadata={ADDED: True})

    def __post_init__(self) -> None:
        check_at_least(1, refresh=self.refresh)

    def wrap(self, denoiser: Denoiser, name: str) -> Denoiser:
        if (network := _network(denoiser, name)).packed:
            raise UnmaskError(f"{name} is block-causal: use cache='exact', which loses nothing")
        return Cached(network, self)


@kv_cache("prefix")
class PrefixCache(DualCache):
    """Everything before the block is cached."""


def _network(denoiser: Denoiser, name: str) -> Network:
    if not isinstance(denoiser, Network):
        raise UnmaskError(f"{name} has no keys and values to cache: use cache='none'")
    return denoiser


def make_cache(spec: str) -> str:
    """Return the canonical spelling of a cache."""
    return kv_cache.spec(kv_cache.make(str(spec)))


def usual_cache(denoiser: Denoiser) -> str:
    """Return the cache of a model where none is named: the exact one, if it has one."""
    return EXACT if isinstance(denoiser, Network) and denoiser.packed else "none"


def cached(denoiser: Denoiser, spec: str | None = None, name: str = "the model") -> Denoiser:
    """Return the denoiser with a cache, by default its usual one; refuse a cache that the model does not allow."""
    return kv_cache.make(spec or usual_cache(denoiser)).wrap(denoiser, name)


class Cached(Wrapper):
    """A network that computes only the window of each row, and reads the rest from the cache."""

    def __init__(self, network: Network, cache: DualCache):
        super().__init__(network)
        self.network, self.cache = network, cache

    @property
    def refresh(self) -> int:
        return self.cache.refresh or self.context  # no block has more steps than the context has positions

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        if cache is None:
            return self.network(canvas, at)
        cache = cache.derive("window", lambda cache: replace(cache, window=self._window(canvas, cache.window)))
        at = self.network.read_at(canvas, at)
        place = torch.searchsorted(cache.window, at.contiguous()).clamp_(max=cache.window.shape[1] - 1)
        if self.device.type == "cpu" and not torch.equal(cache.window.gather(1, place), at):
            raise UnmaskError("the model was asked about a column whose keys and values are cached: enter a wider span")
        stale = cache.store.stale(cache)
        if cache.store.content is None:
            cache.store.content = Store(self.network)
        hidden, computed = cache.store.content.read(canvas, cache, stale)
        return self.network.beliefs(take(hidden, place), computed)

    def _window(self, canvas: Canvas, columns: Columns) -> Int[Tensor, "row window"]:
        """Return the columns that are computed at every step, left to right; the last may be repeated."""
        if self.network.shifted:  # logits are read one position earlier
            columns = union(canvas, columns, self.network.read_at(canvas, columns))
        if isinstance(self.cache, PrefixCache):
            first = columns.amin(1, keepdim=True)
            size = int((canvas.width - first).max())
            columns = (first + torch.arange(size, device=first.device)).clamp_(max=canvas.width - 1)
        return whole_buckets(columns).contiguous()


def union(canvas: Canvas, first: Columns, second: Columns) -> Int[Tensor, "row both"]:
    """Return the columns in either, left to right. Rows that have fewer repeat their last."""
    marked = torch.zeros(canvas.tokens.shape, dtype=torch.bool, device=first.device)
    marked = marked.scatter(1, torch.cat([first, second], dim=1), True)
    count = marked.sum(1, keepdim=True)
    ranked = marked.to(torch.int8).sort(dim=1, descending=True, stable=True).indices
    most = torch.arange(int(count.max()), device=first.device)
    return ranked.gather(1, torch.minimum(most, count - 1))


class Store:
    """The keys and values of the rows of a `CacheStore`. An entry is filled by the first call about it."""

    def __init__(self, network: Network):
        self.network = network
        self.tables: dict[int, Table] = {}  # by width; one on a GPU

    def read(self, canvas: Canvas, cache: CacheView, stale: bool) -> tuple[Tensor, PerRow]:
        """Return hidden states of the windows (row, at, width), and how many positions were computed for each row."""
        filled = self._fill(cache) if stale else {}
        parts = buckets(canvas)
        read = [self.tables[bucket.width].read(bucket, cache, filled.get(bucket.width)) for bucket in parts]
        return in_order(parts, [hidden for hidden, _ in read]), in_order(parts, [count for _, count in read])

    def _fill(self, cache: CacheView) -> dict[int, Filled]:
        """Compute the stale entries of this call by full forward passes. Finding them waits for the device."""
        has, wanted, filled = cache.store.filled, cache.stamps, {}
        new = sorted({row for row in cache.entries.tolist() if has.get(e := row // cache.scale) != wanted[e]})
        if not new:
            return {}
        cache.store.fill(cache, {row // cache.scale for row in new})
        rows = torch.tensor(new, device=cache.entries.device)
        for bucket in buckets(cache.snapshot.rows(rows)):
            table = self.tables.setdefault(bucket.width, Table(self.network))
            table.grow(len(cache.stamps) * cache.scale, bucket)
            filled[bucket.width] = table.fill(rows[bucket.rows], bucket)
        return filled


class Filled(NamedTuple):
    """Rows of a table that this call filled, and their hidden states everywhere."""

    rows: Int[Tensor, " some"]
    hidden: Float[Tensor, "some pos width"]


class Table:
    """Keys and values of rows of one width, and the tokens they were computed from."""

    def __init__(self, network: Network):
        self.network = network
        self.kv = network.module.room(0, 0)
        self.tokens = torch.zeros(0, 0, dtype=torch.long, device=network.device)

    def grow(self, rows: int, bucket: Bucket) -> None:
        if (before := len(self.tokens)) >= rows:
            return
        kv, tokens = self.network.module.room(rows, bucket.width), bucket.tokens.new_zeros(rows, bucket.width)
        if before:
            kv[:, :, :before], tokens[:before] = self.kv, self.tokens
        self.kv, self.tokens = kv, tokens

    def fill(self, rows: Int[Tensor, " some"], bucket: Bucket) -> Filled:
        everything = len(rows) == len(self.tokens)
        kv = self.kv if everything else self.network.module.room(len(rows), bucket.width)
        some = chunks(len(rows), bucket.width, rows.device)
        parts = zip(some, kv.split(len(some[0]), dim=2), strict=True)
        hidden = [self.network.whole(bucket.take(chunk), part) for chunk, part in parts]
        if not everything:
            self.kv[:, :, rows] = kv
        self.tokens[rows] = bucket.tokens
        return Filled(rows, torch.cat(hidden))

    def read(self, bucket: Bucket, cache: CacheView, filled: Filled | None) -> tuple[Tensor, PerRow]:
        rows, window = cache.entries[bucket.rows], cache.window[bucket.rows]
        columns = window + bucket.extra
        computed = 1 + (window[:, 1:] != window[:, :-1]).sum(1)
        self._check(bucket, rows, columns)
        if filled is None:
            return self._step(bucket, cache, rows, columns, cache.steady), computed
        now = torch.isin(rows, filled.rows)
        same = now & (bucket.tokens == self.tokens[rows]).all(1)
        place = torch.searchsorted(filled.rows, rows).clamp_(max=len(filled.rows) - 1)
        hidden = take(filled.hidden[place], columns)
        if len(other := (~same).nonzero()[:, 0]):  # filled earlier, or written to since it entered
            hidden[other] = self._step(bucket.take(other), cache, rows[other], columns[other], steady=False)
        length = torch.where(now, bucket.width - bucket.pad, 0)
        return hidden, torch.where(same, length, computed + length)

    def _check(self, bucket: Bucket, rows: PerRow, columns: Columns) -> None:
        if rows.device.type != "cpu":  # the check would wait for the device
            return
        changed = (bucket.tokens != self.tokens[rows]).scatter(1, columns, False)
        if changed.any():
            row, column = changed.nonzero()[0].tolist()
            raise UnmaskError(
                f"position {column - int(bucket.pad[row])} was written outside the block that was entered: "
                "enter the block before writing to it"
            )

    def _step(self, bucket: Bucket, cache: CacheView, rows: PerRow, columns: Columns, steady: bool) -> Tensor:
        window = Window(bucket.tokens.gather(1, columns), columns - bucket.pad[:, None], columns, bucket.real)
        if steady and self.network.graphs.fit(window):
            version = (cache.generation, cache.store.fills, bucket.width, cache.version)
            return self.network.graphs(self.kv, rows, window, version)
        parts = chunks(len(rows), columns.shape[1], rows.device)
        return torch.cat([self._launch(rows[some], window.rows(some)) for some in parts])

    def _launch(self, rows: PerRow, window: Window) -> Float[Tensor, "row at width"]:
        """Copy each layer's keys and values only while it runs, so that rows with one parent share its entry."""
        kv, line = self.kv, lines(self.kv, rows)
        return self.network.module(
            window.tokens, window.places, window.real, lambda layer: select(kv[layer], line), window.columns
        )
