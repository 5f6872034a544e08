"""What a decoding cost, counted where the network is called."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unmask.core.beliefs import Beliefs
from unmask.core.canvas import Canvas
from unmask.core.denoiser import Denoiser
from unmask.core.shapes import Columns, Rows


@dataclass(frozen=True)
class Cost:
    """Of one problem, except `calls`, `seconds` and `memory`, which its batch shares."""

    calls: int  # of the network
    rows: int  # asked for: the paper's NFE divided by L
    distinct: int  # really computed: identical rows of one problem are computed once
    positions: int  # of the distinct rows, padding apart
    seconds: float
    memory: int  # most bytes allocated on the device; 0 where the device does not say


class Metered:
    """Counts a denoiser's work by problem, and has identical rows of one problem computed once."""

    def __init__(self, inner: Denoiser, problems: int, counts: Tensor | None = None):
        self.inner = inner
        self.mask_id, self.context = inner.mask_id, inner.context
        self.device, self.dtype = inner.device, inner.dtype
        # (rows, distinct, positions) by problem: on the device, so that counting never waits for it
        self.counts = torch.zeros(3, problems, dtype=torch.long, device=inner.device) if counts is None else counts
        self.calls = 0
        self.outer = self

    def __call__(self, canvas: Canvas, at: Columns) -> Beliefs:
        self.outer.calls += 1
        self._count(0, canvas.problem, torch.ones_like(canvas.problem))
        if self.device.type != "cpu":  # finding equal rows would wait for the device
            self._count_computed(canvas)
            return self.inner(canvas, at)
        first, copies = merge(canvas, at)
        if len(first) == len(canvas):
            self._count_computed(canvas)
            return self.inner(canvas, at)
        distinct = replace(canvas.rows(first), source=canvas.source[first])
        self._count_computed(distinct)
        return self.inner(distinct, at[first]).rows(copies)

    def hold(self, canvas: Canvas, fresh: Columns) -> Metered:
        held = Metered(self.inner.hold(canvas, fresh), 0, self.counts)
        held.outer = self.outer
        return held

    def _count_computed(self, canvas: Canvas) -> None:
        self._count(1, canvas.problem, torch.ones_like(canvas.problem))
        self._count(2, canvas.problem, canvas.width - canvas.pad)

    def _count(self, what: int, problem: Rows, amount: Rows) -> None:
        self.counts[what].index_add_(0, problem, amount)


def merge(canvas: Canvas, at: Columns) -> tuple[Rows, Rows]:
    """The first row of every set of identical ones, and for each row its place among those."""
    words = torch.cat([canvas.problem[:, None], at, canvas.tokens], dim=1).numpy()
    seen: dict[bytes, int] = {}
    leader = [seen.setdefault(row.tobytes(), i) for i, row in enumerate(words)]
    rank = {row: i for i, row in enumerate(seen.values())}
    return torch.tensor(list(rank)), torch.tensor([rank[row] for row in leader])
