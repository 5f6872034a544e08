"""Keys and values kept between steps (Fast-dLLM, arXiv 2505.22618): a step computes the block, not the whole row.

Approximate: attention goes both ways, so what is kept would change with every token that is written. One full forward
at a block's start fills the memory and answers the first step. `prefix` keeps what stands before the first fresh
column, `dual` everything outside the fresh ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast, get_args

import torch
from torch import Tensor

from unmask.core import Beliefs, Canvas, Denoiser
from unmask.core.shapes import Columns, Float, Int, Rows
from unmask.errors import UnmaskError, nearest
from unmask.models.adapters import Shifted
from unmask.models.graphs import Window
from unmask.models.network import BUCKET, CHUNK, Network, Sheet, sheets, take
from unmask.models.transformer import lines, select
from unmask.registry import parse

Keep = Literal["prefix", "dual"]
Windows = Int[Tensor, "row window"]  # the columns computed at every step, left to right; the last may be repeated


@dataclass(frozen=True)
class Cache:
    """What is kept through a block; written as `dual`, or `dual(refresh=4)`."""

    keep: Keep
    refresh: int | None = None  # steps after which all is computed anew; None: at the next block

    def __post_init__(self) -> None:
        if self.refresh is not None and self.refresh < 1:
            raise UnmaskError(f"refresh={self.refresh} does not work: choose 1 or more steps")

    def __str__(self) -> str:
        return self.keep if self.refresh is None else f"{self.keep}(refresh={self.refresh})"


def read_cache(spec: str) -> Cache | None:
    call = parse(str(spec))
    known = ("none", *get_args(Keep))
    if call.name not in known:
        raise UnmaskError(f"unknown cache {call.name!r}: {nearest(call.name, known)}")
    for key in call.settings:
        if call.name == "none" or key != "refresh":
            raise UnmaskError(f"cache {call.name!r} has no setting {key!r}: write dual(refresh=4)")
    if call.name == "none":
        return None
    said = call.settings.get("refresh")
    if said is None:
        return Cache(cast(Keep, call.name))
    if said.settings or not re.fullmatch(r"-?\d+", said.name):
        raise UnmaskError(f"refresh takes a whole number of steps, not {said.name!r}")
    return Cache(cast(Keep, call.name), int(said.name))


def make_cache(spec: str) -> str:
    """The one way to write it."""
    return str(read_cache(spec) or "none")


def cached(denoiser: Denoiser, spec: str, name: str = "the model") -> Denoiser:
    """The denoiser with a cache under its outer adapter; refused where there is nothing to keep."""
    cache = read_cache(spec)
    if cache is None:
        return denoiser
    if isinstance(denoiser, Shifted):
        return Shifted(cached(denoiser.inner, spec, name))
    if not isinstance(denoiser, Network):
        raise UnmaskError(f"{name} keeps no keys and values between steps: use cache='none'")
    return Cached(denoiser, cache)


class Cached:
    def __init__(self, network: Network, cache: Cache):
        self.network = network
        self.cache, self.lasts = cache, cache.refresh or network.context  # a block has no more steps than that
        self.mask_id, self.context = network.mask_id, network.context
        self.device, self.dtype = network.device, network.dtype

    def __call__(self, canvas: Canvas, at: Columns) -> Beliefs:
        return self.network(canvas, at)

    def hold(self, canvas: Canvas, fresh: Columns) -> Denoiser:
        rows = torch.arange(len(canvas), device=self.device)
        return Holding(self, Store(self.network, canvas), rows, canvas, fresh, steady=True)


class Holding:
    """What a decoder asks between two holds."""

    def __init__(self, cached: Cached, store: Store, rows: Rows, canvas: Canvas, fresh: Columns, steady: bool):
        self.cached, self.store, self.rows = cached, store, rows
        self.mask_id, self.context = cached.mask_id, cached.context
        self.device, self.dtype = cached.device, cached.dtype
        self.window = window_of(canvas, fresh, cached.cache.keep)
        self.steady = steady  # whether its shape will be asked for again and again
        self.seen: tuple[Rows, Rows, Windows] | None = None

    def __call__(self, canvas: Canvas, at: Columns) -> Beliefs:
        rows, window = self._rows(canvas.source)
        place = torch.searchsorted(window, at.contiguous()).clamp_(max=window.shape[1] - 1)
        if self.device.type == "cpu":  # elsewhere looking would wait for the device
            self._check(canvas, at, rows, window, place)
        hidden, computed = self.store.read(canvas, rows, window, self.steady)
        return self.cached.network.beliefs(take(hidden, place), computed)

    def hold(self, canvas: Canvas, fresh: Columns) -> Denoiser:
        """What is kept stays kept: no forward is made again."""
        return Holding(self.cached, self.store, self.rows[canvas.source], canvas, fresh, steady=False)

    def _rows(self, source: Rows) -> tuple[Rows, Windows]:
        """Of the store. The same tensors for the same source, by which a graph knows what it has loaded."""
        if self.seen is None or self.seen[0] is not source:
            self.seen = source, self.rows[source], self.window[source]
        return self.seen[1], self.seen[2]

    def _check(self, canvas: Canvas, at: Columns, rows: Rows, window: Windows, place: Tensor) -> None:
        if not torch.equal(window.gather(1, place), at):
            raise UnmaskError("a column that is held was asked about: hold it as fresh")
        changed = (canvas.tokens != self.store.canvas.tokens[rows]).scatter(1, window, False)
        if changed.any():
            row, column = changed.nonzero()[0].tolist()
            raise UnmaskError(f"column {column} of row {row} was written to while it is held: hold it as fresh")


def window_of(canvas: Canvas, fresh: Columns, keep: Keep) -> Windows:
    if keep == "prefix":
        first = fresh.amin(1, keepdim=True)
        size = int((canvas.width - first).max())
        window = (first + torch.arange(size, device=fresh.device)).clamp_(max=canvas.width - 1)
    else:
        window = fresh.sort(dim=1).values
    if fresh.device.type == "cpu":  # products of a few rows are summed in another order
        window = torch.cat([window, window[:, -1:].expand(-1, -window.shape[1] % BUCKET)], dim=1)
    return window.contiguous()


class Store:
    """Keys and values of a held canvas, filled by the first question about it."""

    def __init__(self, network: Network, canvas: Canvas):
        self.canvas = canvas
        self.pages = [Page(network, sheet) for sheet in sheets(canvas)]
        page, place = torch.zeros_like(canvas.pad), torch.zeros_like(canvas.pad)
        for number, made in enumerate(self.pages):
            page[made.sheet.rows] = number
            place[made.sheet.rows] = torch.arange(len(made.sheet.rows), device=place.device)
        self.page, self.place = page, place

    def read(self, canvas: Canvas, rows: Rows, window: Windows, steady: bool) -> tuple[Tensor, Rows]:
        """Hidden states of the windows (row, at, width), and how many positions were computed for each row."""
        tokens = canvas.at(window)
        if len(self.pages) == 1:
            return self.pages[0].read(rows, tokens, window, steady)
        hidden: Tensor | None = None
        computed = torch.zeros_like(rows)
        for number, page in enumerate(self.pages):
            mine = (self.page[rows] == number).nonzero()[:, 0]
            if len(mine):
                part, computed[mine] = page.read(self.place[rows[mine]], tokens[mine], window[mine], steady)
                hidden = part.new_empty(len(rows), *part.shape[1:]) if hidden is None else hidden
                hidden[mine] = part
        assert hidden is not None
        return hidden, computed


class Page:
    """The rows of a store that go through the network together."""

    def __init__(self, network: Network, sheet: Sheet):
        self.network, self.sheet = network, sheet
        self.kv: Float[Tensor, "layer 2 row head pos dim"] | None = None
        self.lacking = set(range(len(sheet.rows)))  # rows not filled yet: one that has ended is never asked about

    def read(self, rows: Rows, tokens: Tensor, window: Windows, steady: bool) -> tuple[Tensor, Rows]:
        columns = window + self.sheet.extra
        distinct = 1 + (window[:, 1:] != window[:, :-1]).sum(1)
        new = sorted(self.lacking.intersection(rows.tolist())) if self.lacking else []
        if not new:
            return self._step(rows, tokens, columns, steady), distinct
        filled = torch.tensor(new, device=rows.device)
        whole, now = self._fill(filled), torch.isin(rows, filled)
        same = now & (tokens == self.sheet.tokens[rows].gather(1, columns)).all(1)
        hidden = take(whole[torch.searchsorted(filled, rows).clamp_(max=len(new) - 1)], columns)
        if len(other := (~same).nonzero()[:, 0]):  # filled before, or written to since it was held
            hidden[other] = self._step(rows[other], tokens[other], columns[other], steady)
        length = torch.where(now, self.sheet.width - self.sheet.pad[rows], 0)
        return hidden, torch.where(same, length, distinct + length)

    def _fill(self, rows: Int[Tensor, " some"]) -> Float[Tensor, "row pos width"]:
        """The full forward."""
        sheet = self.sheet
        if self.kv is None:
            self.kv = self.network.module.room(len(sheet.rows), sheet.width)
        everything = len(rows) == len(sheet.rows)
        kv = self.kv if everything else self.network.module.room(len(rows), sheet.width)
        size = max(1, CHUNK // sheet.width)
        whole = [
            self.network.whole(sheet.tokens[some], sheet.pad[some], sheet.masked, kv[:, :, start : start + size])
            for start, some in zip(range(0, len(rows), size), rows.split(size), strict=True)
        ]
        if not everything:
            self.kv[:, :, rows] = kv
        self.lacking -= set(rows.tolist())
        return torch.cat(whole)

    def _step(self, rows: Rows, tokens: Tensor, columns: Windows, steady: bool) -> Float[Tensor, "row at width"]:
        assert self.kv is not None
        pad = self.sheet.pad[rows]
        every = torch.arange(self.sheet.width, device=rows.device)
        real = every >= pad[:, None] if self.sheet.masked else None
        window = Window(tokens, columns - pad[:, None], columns, real)
        if steady and self.network.graphs.fit(window):
            return self.network.graphs(self.kv, rows, window)
        size = max(1, CHUNK // columns.shape[1])
        parts = torch.arange(len(rows), device=rows.device).split(size)
        return torch.cat([self._held(rows[some], window.rows(some)) for some in parts])

    def _held(self, rows: Rows, window: Window) -> Float[Tensor, "row at width"]:
        """A layer's keys and values are copied while it runs, so that draws of one parent share what is kept."""
        kv = self.kv
        assert kv is not None
        line = lines(kv, rows)
        return self.network.module(
            window.tokens, window.places, window.real, lambda layer: select(kv[layer], line), window.columns
        )
