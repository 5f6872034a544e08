"""What a decoding cost, counted where the network is called."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from unmask.core.beliefs import Beliefs
from unmask.core.canvas import Canvas
from unmask.core.denoiser import Denoiser, Wrapper, lasts
from unmask.core.shapes import Columns, Int, Rows

FEW = 8  # rows of which a step with a cache takes about as long as of one: the weights have to be read either way


@dataclass(frozen=True)
class Cost:
    """Of one problem, except `calls`, `seconds` and `memory`, which its batch shares."""

    calls: int  # of the network
    rows: int  # asked for: the paper's NFE divided by L
    distinct: int  # really computed: identical rows of one problem are computed once
    positions: int  # of the distinct rows, padding apart
    seconds: float
    memory: int  # most bytes allocated on the device; 0 where the device does not say


class Merged(NamedTuple):
    """Rows of one call that stand for all: which they are, and which held rows they came from."""

    source: Rows  # of all
    rows: list[int]
    first: Int[Tensor, " first"]
    inside: Int[Tensor, " first"]


class Metered(Wrapper):
    """Counts a denoiser's work by problem, and has identical rows of one problem computed once.

    On a CPU equal rows are looked for at every call. Elsewhere looking waits for the device: it is done where a decoder
    holds, at the first call after that, where rows have been forked since, and for as long as it finds some. Rows part
    at their own draws, so a look in vain is the last until the next fork. A few rows whose keys and values are kept
    take the time of one, and are left alone.
    """

    def __init__(self, inner: Denoiser, problems: int, outer: Metered | None = None, copies: Rows | None = None):
        super().__init__(inner)
        self.outer = outer or self
        # (rows, distinct, positions) by problem: on the device, so that counting never waits for it
        self.counts = outer.counts if outer else torch.zeros(3, problems, dtype=torch.long, device=inner.device)
        self.calls = 0
        self.copies = copies  # for each row that was held, its place among the distinct ones
        self.looks = True  # whether there may be equal rows worth finding
        self.merged: Merged | None = None
        self.seen: tuple[Rows, Rows] | None = None

    def __call__(self, canvas: Canvas, at: Columns) -> Beliefs:
        self.outer.calls += 1
        self._count(0, canvas.problem, torch.ones_like(canvas.problem))
        looks = looks_freely(self.device) or self._may_merge(canvas)
        canvas = replace(canvas, source=self._inside(canvas.source))
        if not looks:
            return self._counted(canvas, at)
        first, copies = leaders(canvas, self._key(canvas, at))
        self.looks = len(first) < len(canvas) and (lasts(self.outer) is None or len(canvas) > FEW)
        if len(first) == len(canvas):
            return self._counted(canvas, at)
        some = self._first(canvas.source, first)
        fewer = replace(canvas.rows(some.first), source=some.inside)
        return self._counted(fewer, at[some.first]).rows(torch.tensor(copies, device=self.device))

    def hold(self, canvas: Canvas, fresh: Columns) -> Metered:
        canvas = replace(canvas, source=self._inside(canvas.source))
        first, copies = merge(canvas, self._key(canvas, fresh))
        return Metered(self.inner.hold(_rows(canvas, first), fresh[first]), 0, self.outer, copies)

    def _may_merge(self, canvas: Canvas) -> bool:
        return self.copies is not None and (self.looks or len(canvas) > len(self.copies))

    def _key(self, canvas: Canvas, at: Columns) -> Int[Tensor, "row key"]:
        """Equal rows may stand on keys and values of unequal ones: where a cache was refreshed, or all is hidden."""
        apart = self.copies is not None and lasts(self.outer) is not None
        return torch.cat([canvas.source[:, None], at], dim=1) if apart else at

    def _first(self, source: Rows, first: list[int]) -> Merged:
        """The same tensors for the same rows: a cache knows by them what it has loaded."""
        if self.merged is None or self.merged.source is not source or self.merged.rows != first:
            index = torch.tensor(first, device=self.device)
            self.merged = Merged(source, first, index, source[index])
        return self.merged

    def _inside(self, source: Rows) -> Rows:
        """Rows of what the inner one holds. The same answer for the same question: a cache knows its rows by it."""
        if self.copies is None:
            return source
        if self.seen is None or self.seen[0] is not source:
            self.seen = source, self.copies[source]
        return self.seen[1]

    def _counted(self, canvas: Canvas, at: Columns) -> Beliefs:
        beliefs = self.inner(canvas, at)
        self._count(1, canvas.problem, torch.ones_like(canvas.problem))
        self._count(2, canvas.problem, canvas.width - canvas.pad if beliefs.computed is None else beliefs.computed)
        return beliefs

    def _count(self, what: int, problem: Rows, amount: Rows) -> None:
        self.counts[what].index_add_(0, problem, amount)


def looks_freely(device: torch.device) -> bool:
    """Whether reading a tensor waits for nothing."""
    return device.type == "cpu"


def _rows(canvas: Canvas, index: Int[Tensor, " some"]) -> Canvas:
    return replace(canvas.rows(index), source=canvas.source[index])


def merge(canvas: Canvas, key: Int[Tensor, "row key"]) -> tuple[Int[Tensor, " first"], Rows]:
    """The first row of every set with equal keys and tokens, and for each row its place among those."""
    first, copies = leaders(canvas, key)
    device = canvas.tokens.device
    return torch.tensor(first, device=device), torch.tensor(copies, device=device)


def leaders(canvas: Canvas, key: Int[Tensor, "row key"]) -> tuple[list[int], list[int]]:
    """As `merge`, known here."""
    words = torch.cat([canvas.problem[:, None], key, canvas.tokens], dim=1).cpu().numpy()
    seen: dict[bytes, int] = {}
    leader = [seen.setdefault(row.tobytes(), i) for i, row in enumerate(words)]
    rank = {row: i for i, row in enumerate(seen.values())}
    return list(rank), [rank[row] for row in leader]
