"""What a model keeps of rows between questions, such as keys and values, and which part of it a question is about."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import torch
from torch import Tensor

from unmask.core.canvas import Canvas
from unmask.core.shapes import Columns, Int, PerRow

_NUMBERS = count()


class CacheStore:
    """Room for what a model keeps of some rows, place by place. Only the model knows what is in it."""

    def __init__(self, rows: int, places: int):
        self.rows = rows  # that shared it from the start
        self.places = places  # equal rows share one
        self.stale = set(range(places))  # filled by the next question about them
        self.fills = 0  # how often anything was filled
        self.may_repeat = True  # whether equal rows are worth looking for
        self.content: Any = None
        self.progress: dict[
            int, tuple[Hashable, int]
        ] = {}  # by place: its block and age, if rows advance by themselves
        self.number = next(_NUMBERS)

    def release(self) -> None:
        """Free the content. Rows that still ask cause their places to be filled again."""
        self.content, self.stale = None, set(range(self.places))

    def take(self) -> int:
        """A new place."""
        self.places += 1
        return self.places - 1

    def enter(self, place: int, block: Hashable) -> None:
        self.progress[place] = (block, 1)
        self.stale.add(place)

    def expired(self, place: int, block: Hashable, refresh: int) -> bool:
        """Whether a place was filled for another block, or too many steps ago."""
        before, age = self.progress.get(place, (block, refresh))
        return before != block or age >= refresh

    def grow_older(self, places: set[int]) -> None:
        for place in places:
            block, age = self.progress[place]
            self.progress[place] = (block, age + 1)


@dataclass(frozen=True, eq=False)
class CacheView:
    """Of each row of a question, its place in a memory and the columns that are computed anew."""

    memory: CacheStore
    snapshot: Canvas  # a row per place, as it was when it entered: what a stale place is filled with
    places: PerRow
    window: Columns  # left to right; its last column may be repeated
    span: slice | None = None  # the slots that the window covers, where all rows share them
    age: int = 1  # steps since the memory was filled
    steady: bool = True  # whether questions of this shape will come again
    scale: int = 1  # rows of the model for each place
    aside: frozenset[int] = frozenset()  # places of rows that are not part of this question but will be again
    version: tuple[Hashable, ...] = field(default_factory=lambda: (next(_NUMBERS),))  # equal for equal rows
    derived: dict[Hashable, CacheView] = field(default_factory=dict)

    def derive(self, key: Hashable, change: Callable[[CacheView], CacheView]) -> CacheView:
        """A changed one, made once per key."""
        if key not in self.derived:
            self.derived[key] = replace(change(self), version=(*self.version, key), derived={})
        return self.derived[key]

    def rows(self, index: Int[Tensor, " new"]) -> CacheView:
        """Row i of the result is row index[i]."""
        moved = {"places": self.places[index], "window": self.window[index]}
        return replace(self, **moved, version=(next(_NUMBERS),), derived={})

    def put(self, index: Int[Tensor, " some"], cache: CacheView) -> CacheView:
        """The inverse of `rows`. Rows that share a span have not moved."""
        if cache.span is not None:
            return self
        places, window = self.places.clone(), self.window.clone()
        places[index], window[index] = cache.places, cache.window
        return CacheView(cache.memory, cache.snapshot, places, window)

    def some(self, rows: list[int]) -> CacheView:
        """As `rows`, for rows that are known on the host."""
        return self.derive(tuple(rows), lambda cache: cache.rows(cache.places.new_tensor(rows)))

    def wider(self, window: Columns) -> CacheView:
        """For one question about more columns; what lies outside them stays kept."""
        self.memory.may_repeat = True
        return replace(self, window=window, steady=False, version=(next(_NUMBERS),), derived={})


def distinct(canvas: Canvas, key: Int[Tensor, "row key"]) -> tuple[list[int], list[int]]:
    """The first row of every set with equal problem, key and tokens, and for each row its place among those."""
    words = torch.cat([canvas.problem[:, None], key, canvas.tokens], dim=1).cpu().numpy()
    seen: dict[bytes, int] = {}
    leader = [seen.setdefault(row.tobytes(), i) for i, row in enumerate(words)]
    rank = {row: i for i, row in enumerate(seen.values())}
    return list(rank), [rank[row] for row in leader]
