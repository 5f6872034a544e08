"""The KV cache as rows see it: which entry of a store each row reads, and which columns are computed at every step.

A `CacheView` is immutable and says everything that decides a result, including the text from which each entry has to be
computed. A `CacheStore` is the memory behind views. The model alone fills it; an entry that holds something other than
a view asks for is computed again, so that the same view gives the same result whatever happened to the store.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unmask.core.canvas import Canvas
from unmask.core.shapes import Columns, Int, PerRow

_NUMBERS = count(1)


class CacheStore:
    """Memory for keys and values, owned by the views that share it. Only the model knows what is in `content`."""

    def __init__(self) -> None:
        self.generation = 0  # the generation of views that it holds entries of
        self.filled: dict[int, int] = {}  # for each entry, the stamp of what it holds
        self.fills = 0  # how often entries were filled
        self.content: Any = None

    def stale(self, view: CacheView) -> bool:
        """Return whether entries of a view have to be computed. A different generation frees what the store held."""
        if view.generation != self.generation:
            self.generation, self.filled, self.content = view.generation, {}, None
        return self.filled != view.stamps

    def fill(self, view: CacheView, entries: set[int]) -> None:
        """Note that these entries now hold what the view asks for."""
        self.filled |= {entry: view.stamps[entry] for entry in entries}
        self.fills += 1


class Progress(NamedTuple):
    """The block that the rows of an entry work on, and the steps they have taken since it was filled."""

    block: Hashable
    age: int


@dataclass(frozen=True, eq=False)
class CacheView:
    """For each row of a batch, its entry in a store and the columns that are computed at every step."""

    store: CacheStore
    generation: int  # rises whenever rows enter a span: nothing of an earlier generation is read again
    snapshot: Canvas  # for each entry, the text from which its keys and values are computed
    stamps: Mapping[int, int]  # for each entry, a number that changes with its snapshot
    entries: PerRow  # the entry that each row reads; equal rows share one
    window: Columns  # the columns that are computed at every step, left to right; the last may be repeated
    rows: int  # how many rows there were when the generation began
    span: slice | None = None  # the slots that the window covers, where all rows share them
    age: int = 1  # steps since the span was entered
    progress: Mapping[int, Progress] = field(default_factory=dict)  # by entry, where rows advance by themselves
    steady: bool = True  # False for a single forward pass whose shape will not come again
    scale: int = 1  # rows of the model for each entry
    aside: frozenset[int] = frozenset()  # entries of rows that take no part now but will again
    version: tuple[Hashable, ...] = field(default_factory=lambda: (next(_NUMBERS),))  # equal for equal rows
    derived: dict[Hashable, CacheView] = field(default_factory=dict)  # memo of `derive`

    @classmethod
    def start(cls, canvas: Canvas, window: Columns, span: slice | None, before: CacheView | None) -> CacheView:
        """Begin a generation, in the store of the view before it. Equal rows share an entry."""
        first, copies = (torch.tensor(rows, device=window.device) for rows in distinct(canvas, window))
        store, stamps = before.store if before else CacheStore(), dict.fromkeys(range(len(first)), 0)
        return cls(store, next(_NUMBERS), canvas.rows(first), stamps, copies, window, len(canvas), span)

    def derive(self, key: Hashable, change: Callable[[CacheView], CacheView]) -> CacheView:
        """Return a changed view, made once per key."""
        if key not in self.derived:
            self.derived[key] = replace(change(self), version=(*self.version, key), derived={})
        return self.derived[key]

    def take(self, index: Int[Tensor, " new"]) -> CacheView:
        """Return the view of some rows: row i of the result is row index[i]."""
        return self._changed(entries=self.entries[index], window=self.window[index])

    def take_listed(self, rows: list[int]) -> CacheView:
        """Do what `take` does, for rows that are known on the host."""
        return self.derive(tuple(rows), lambda view: view.take(view.entries.new_tensor(rows)))

    def set_aside(self, index: Int[Tensor, " some"]) -> CacheView:
        """Return the view of some rows while the entries of all others are left alone."""
        some = set(index.tolist())
        aside = frozenset(entry for row, entry in enumerate(self.entries.tolist()) if row not in some)
        return replace(self.take(index), aside=aside)

    def put(self, index: Int[Tensor, " some"], view: CacheView) -> CacheView:
        """Return this view with the rows of another in the places that the index names."""
        if view.span is not None:  # rows that share a span have not moved
            return self
        entries, window = self.entries.clone(), self.window.clone()
        entries[index], window[index] = view.entries, view.window
        return view._changed(entries=entries, window=window, aside=frozenset())

    def wider(self, window: Columns) -> CacheView:
        """Return a view for one forward pass that computes more columns."""
        return self._changed(window=window, steady=False)

    def advanced(self, canvas: Canvas, blocks: list[tuple[int, int]], window: Columns, refresh: int) -> CacheView:
        """Begin a step on each row's own block. Entries of a new block, or older than `refresh`, are computed again."""
        entries = self.entries.tolist()
        moving = [row for row, block in enumerate(blocks) if self._expired(entries[row], block, refresh)]
        staying = {entries[row] for row in set(range(len(entries))).difference(moving)}
        older = {entry: self.progress[entry]._replace(age=self.progress[entry].age + 1) for entry in staying}
        progress = {**self.progress, **older}
        if not moving:
            return replace(self, progress=progress)
        part = canvas.rows(torch.tensor(moving, device=window.device))
        first, copies = distinct(part, part.tokens[:, :0])
        unused = sorted({entries[row] for row in moving} - staying - self.aside)  # entries that nobody reads any more
        given = [*unused, *range(len(self.stamps), len(self.stamps) + len(first))][: len(first)]
        for copy, entry in enumerate(given):
            progress[entry] = Progress(blocks[moving[first[copy]]], 1)
        for row, copy in zip(moving, copies, strict=True):
            entries[row] = given[copy]
        stamps = {**self.stamps, **{entry: next(_NUMBERS) for entry in given}}
        every = torch.arange(len(stamps), device=window.device).clamp(max=len(self.snapshot) - 1)
        snapshot = self.snapshot.rows(every).put(window.new_tensor(given), part.rows(window.new_tensor(first)))
        moved = {"snapshot": snapshot, "stamps": stamps, "entries": window.new_tensor(entries), "progress": progress}
        return self._changed(**moved, window=window, span=None, age=1, aside=frozenset())

    def _changed(self, **changes: Any) -> CacheView:
        """Return a view with a version of its own."""
        return replace(self, **changes, version=(next(_NUMBERS),), derived={})

    def _expired(self, entry: int, block: Hashable, refresh: int) -> bool:
        before = self.progress.get(entry, Progress(block, refresh))
        return before.block != block or before.age >= refresh


def distinct(canvas: Canvas, key: Int[Tensor, "row key"]) -> tuple[list[int], list[int]]:
    """Return the first row of every set with equal problem, key and tokens, and for each row its place among those."""
    words = torch.cat([canvas.problem[:, None], key, canvas.tokens], dim=1).cpu().numpy()
    seen: dict[bytes, int] = {}
    leader = [seen.setdefault(row.tobytes(), i) for i, row in enumerate(words)]
    rank = {row: i for i, row in enumerate(seen.values())}
    return list(rank), [rank[row] for row in leader]
