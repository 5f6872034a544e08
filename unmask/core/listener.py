"""What a decoder asked between two frames and was told, for whoever shows its drafts."""

from __future__ import annotations

from typing import NamedTuple

from unmask.core.beliefs import Beliefs
from unmask.core.canvas import Canvas
from unmask.core.denoiser import Wrapper
from unmask.core.kept import Kept
from unmask.core.shapes import Columns


class Exchange(NamedTuple):
    canvas: Canvas
    at: Columns
    beliefs: Beliefs


class Listener(Wrapper):
    """Remembers what is asked until it is taken."""

    exchanges: tuple[Exchange, ...] = ()

    def __call__(self, canvas: Canvas, at: Columns, kept: Kept | None = None) -> Beliefs:
        beliefs = self.inner(canvas, at, kept)
        self.exchanges = (*self.exchanges, Exchange(canvas, at, beliefs))
        return beliefs

    def take(self) -> tuple[Exchange, ...]:
        exchanges, self.exchanges = self.exchanges, ()
        return exchanges
