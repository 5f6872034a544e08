"""Keys and values kept between steps (Fast-dLLM, arXiv 2505.22618): a step computes the block, not the whole row.

Approximate: attention goes both ways, so what is kept would change with every token that is written. One full forward
at the start of a block fills the cache and answers the first step. `prefix` keeps what precedes the block, `dual`
everything outside it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, cast, get_args

import torch
from torch import Tensor

from unmask.core import Beliefs, CacheView, Canvas, Denoiser, Wrapper
from unmask.core.shapes import Columns, Float, Int, PerRow
from unmask.errors import UnmaskError, nearest
from unmask.models.network.cuda_graphs import Window
from unmask.models.network.exact_cache import ExactlyCached
from unmask.models.network.network import BUCKET, CHUNK, BlockCausal, Bucket, Network, buckets, take
from unmask.models.network.transformer import lines, select
from unmask.registry import parse

Keep = Literal["prefix", "dual"]
EXACT = "exact"  # what a block-causal model keeps by default (exact_cache.py)


@dataclass(frozen=True)
class Cache:
    """What is kept through a block; written as `dual`, or `dual(refresh=4)`."""

    keep: Keep
    refresh: int | None = None  # steps after which everything is computed anew; None: at the next block

    def __post_init__(self) -> None:
        if self.refresh is not None and self.refresh < 1:
            raise UnmaskError(f"refresh={self.refresh} does not work: choose 1 or more steps")

    def __str__(self) -> str:
        return self.keep if self.refresh is None else f"{self.keep}(refresh={self.refresh})"


def read_cache(spec: str) -> Cache | None:
    call = parse(str(spec))
    known = ("none", EXACT, *get_args(Keep))
    if call.name not in known:
        raise UnmaskError(f"unknown cache {call.name!r}: {nearest(call.name, known)}")
    for key in call.settings:
        if call.name in ("none", EXACT) or key != "refresh":
            raise UnmaskError(f"cache {call.name!r} has no setting {key!r}: write dual(refresh=4)")
    if call.name in ("none", EXACT):
        return None
    refresh = call.settings.get("refresh")
    if refresh is None:
        return Cache(cast(Keep, call.name))
    if refresh.settings or not re.fullmatch(r"-?\d+", refresh.name):
        raise UnmaskError(f"refresh takes a whole number of steps, not {refresh.name!r}")
    return Cache(cast(Keep, call.name), int(refresh.name))


def make_cache(spec: str) -> str:
    """The one way to write it."""
    return str(read_cache(spec) or parse(str(spec)).name)


def usual_cache(denoiser: Denoiser) -> str:
    """The cache of a model where none is named: the exact one, if it has one."""
    return EXACT if isinstance(denoiser, BlockCausal) else "none"


def cached(denoiser: Denoiser, spec: str | None = None, name: str = "the model") -> Denoiser:
    """The denoiser with a cache, by default its usual one; refused where the model does not allow it."""
    chosen = make_cache(spec or usual_cache(denoiser))
    if chosen == "none":
        return denoiser
    if isinstance(denoiser, BlockCausal):
        if chosen != EXACT:
            raise UnmaskError(f"{name} is block-causal: use cache='exact', which loses nothing, instead of {chosen!r}")
        return ExactlyCached(denoiser)
    if not isinstance(denoiser, Network):
        raise UnmaskError(f"{name} keeps no keys and values between steps: use cache='none'")
    if (cache := read_cache(chosen)) is None:
        raise UnmaskError(f"{name} is not block-causal, so no cache of it is exact: use cache='prefix' or 'dual'")
    return Cached(denoiser, cache)


class Cached(Wrapper):
    def __init__(self, network: Network, cache: Cache):
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
            raise UnmaskError("the model was asked about a column whose keys and values are kept: name a wider span")
        stale = cache.store.stale(cache)
        if cache.store.content is None:
            cache.store.content = Store(self.network)
        hidden, computed = cache.store.content.read(canvas, cache, stale)
        return self.network.beliefs(take(hidden, place), computed)

    def _window(self, canvas: Canvas, columns: Columns) -> Int[Tensor, "row window"]:
        """The columns that are computed at every step, left to right; the last may be repeated."""
        if self.network.shifted:  # what is read one position earlier is computed too
            columns = union(canvas, columns, self.network.read_at(canvas, columns))
        if self.cache.keep == "prefix":
            first = columns.amin(1, keepdim=True)
            size = int((canvas.width - first).max())
            columns = (first + torch.arange(size, device=first.device)).clamp_(max=canvas.width - 1)
        if columns.device.type == "cpu":  # products of a few rows are summed in another order
            columns = torch.cat([columns, columns[:, -1:].expand(-1, -columns.shape[1] % BUCKET)], dim=1)
        return columns.contiguous()


def union(canvas: Canvas, first: Columns, second: Columns) -> Int[Tensor, "row both"]:
    """Columns in either, left to right. Rows that have fewer repeat their last."""
    marked = torch.zeros(canvas.tokens.shape, dtype=torch.bool, device=first.device)
    marked = marked.scatter(1, torch.cat([first, second], dim=1), True)
    count = marked.sum(1, keepdim=True)
    ranked = marked.to(torch.int8).sort(dim=1, descending=True, stable=True).indices
    most = torch.arange(int(count.max()), device=first.device)
    return ranked.gather(1, torch.minimum(most, count - 1))


class Store:
    """Keys and values of a memory's rows. A place is filled by the first question about it."""

    def __init__(self, network: Network):
        self.network = network
        self.shelves: dict[int, Shelf] = {}  # by width: one on a GPU

    def read(self, canvas: Canvas, cache: CacheView, stale: bool) -> tuple[Tensor, PerRow]:
        """Hidden states of the windows (row, at, width), and how many positions were computed for each row."""
        filled = self._fill(cache) if stale else {}
        parts = [(bucket, *self._read(bucket, cache, filled)) for bucket in buckets(canvas)]
        if len(parts) == 1:
            return parts[0][1:]
        hidden = parts[0][1].new_empty(len(canvas), *parts[0][1].shape[1:])
        computed = torch.zeros_like(cache.entries)
        for bucket, part, count in parts:
            hidden[bucket.rows], computed[bucket.rows] = part, count
        return hidden, computed

    def _read(self, bucket: Bucket, cache: CacheView, filled: dict[int, Filled]) -> tuple[Tensor, PerRow]:
        return self.shelves[bucket.width].read(bucket, cache, filled.get(bucket.width))

    def _fill(self, cache: CacheView) -> dict[int, Filled]:
        """The full forwards of the question's stale places, by width. Looking for them waits for the device."""
        has, wanted, filled = cache.store.filled, cache.stamps, {}
        new = sorted({row for row in cache.entries.tolist() if has.get(e := row // cache.scale) != wanted[e]})
        if not new:
            return {}
        cache.store.fill(cache, {row // cache.scale for row in new})
        rows = torch.tensor(new, device=cache.entries.device)
        for bucket in buckets(cache.snapshot.rows(rows)):
            shelf = self.shelves.setdefault(bucket.width, Shelf(self.network))
            shelf.grow(len(cache.stamps) * cache.scale, bucket)
            filled[bucket.width] = shelf.fill(rows[bucket.rows], bucket)
        return filled


class Filled(NamedTuple):
    """Rows of a shelf that were filled just now, and their hidden states everywhere."""

    rows: Int[Tensor, " some"]
    hidden: Float[Tensor, "some pos width"]


class Shelf:
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
        size = max(1, CHUNK // bucket.width)
        parts = zip(bucket.tokens.split(size), bucket.pad.split(size), kv.split(size, dim=2), strict=True)
        hidden = [self.network.whole(tokens, pad, bucket.masked, part) for tokens, pad, part in parts]
        if not everything:
            self.kv[:, :, rows] = kv
        self.tokens[rows] = bucket.tokens
        return Filled(rows, torch.cat(hidden))

    def read(self, bucket: Bucket, cache: CacheView, filled: Filled | None) -> tuple[Tensor, PerRow]:
        rows, window = cache.entries[bucket.rows], cache.window[bucket.rows]
        columns = window + bucket.extra
        anew = 1 + (window[:, 1:] != window[:, :-1]).sum(1)
        self._check(bucket, rows, columns)
        if filled is None:
            return self._step(bucket, cache, rows, columns, cache.steady), anew
        now = torch.isin(rows, filled.rows)
        same = now & (bucket.tokens == self.tokens[rows]).all(1)
        place = torch.searchsorted(filled.rows, rows).clamp_(max=len(filled.rows) - 1)
        hidden = take(filled.hidden[place], columns)
        if len(other := (~same).nonzero()[:, 0]):  # filled before, or written to since it entered
            hidden[other] = self._step(_some(bucket, other), cache, rows[other], columns[other], steady=False)
        length = torch.where(now, bucket.width - bucket.pad, 0)
        return hidden, torch.where(same, length, anew + length)

    def _check(self, bucket: Bucket, rows: PerRow, columns: Columns) -> None:
        if rows.device.type != "cpu":  # looking would wait for the device
            return
        changed = (bucket.tokens != self.tokens[rows]).scatter(1, columns, False)
        if changed.any():
            row, column = changed.nonzero()[0].tolist()
            raise UnmaskError(
                f"position {column - int(bucket.pad[row])} was written outside the block that was entered: "
                "enter the block that is written"
            )

    def _step(self, bucket: Bucket, cache: CacheView, rows: PerRow, columns: Columns, steady: bool) -> Tensor:
        every = torch.arange(bucket.width, device=rows.device)
        real = every >= bucket.pad[:, None] if bucket.masked else None
        window = Window(bucket.tokens.gather(1, columns), columns - bucket.pad[:, None], columns, real)
        if steady and self.network.graphs.fit(window):
            version = (cache.generation, cache.store.fills, bucket.width, cache.version)
            return self.network.graphs(self.kv, rows, window, version)
        size = max(1, CHUNK // columns.shape[1])
        parts = torch.arange(len(rows), device=rows.device).split(size)
        return torch.cat([self._launch(rows[some], window.rows(some)) for some in parts])

    def _launch(self, rows: PerRow, window: Window) -> Float[Tensor, "row at width"]:
        """A layer's keys and values are copied while it runs, so that children of one row share what is kept."""
        kv, line = self.kv, lines(self.kv, rows)
        return self.network.module(
            window.tokens, window.places, window.real, lambda layer: select(kv[layer], line), window.columns
        )


def _some(bucket: Bucket, index: Int[Tensor, " some"]) -> Bucket:
    return replace(bucket, rows=bucket.rows[index], tokens=bucket.tokens[index], pad=bucket.pad[index])
