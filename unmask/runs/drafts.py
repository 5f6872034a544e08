"""The likeliest token of every masked position when the model was last asked about it, and how that changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from unmask.core import Canvas, Frame
from unmask.core.shapes import Tokens

NONE = -1


@dataclass(frozen=True)
class Drafts:
    token: Tokens  # NONE where nothing was asked, or something is written

    @classmethod
    def blank(cls, canvas: Canvas) -> Drafts:
        return cls(torch.full_like(canvas.tokens, NONE))

    def after(self, old: Canvas, new: Canvas, told: Told) -> tuple[Drafts, list[list[int]]]:
        """Of the rows `new`, each made from the row of `old` at its place, and [row, position, token] that changed."""
        before = self.token.masked_fill(~new.masked, NONE)
        token = before.clone()
        for row in new.masked.any(1).nonzero()[:, 0].tolist():
            for place, draft in told.drafts(new.tokens[row]) or told.drafts(old.tokens[row]):
                if new.masked[row, place]:
                    token[row, place] = draft
        changes = (token != before).nonzero().tolist()
        return Drafts(token), [[row, place, int(token[row, place])] for row, place in changes]

    def rows(self, source: torch.Tensor) -> Drafts:
        return Drafts(self.token[source])


class Told:
    """What the model said of one problem's texts since the frame before, looked up by text."""

    def __init__(self, frame: Frame, problem: int, pad: int):
        self.frame, self.pad = frame, pad
        self._places = dict(self._texts(problem))  # a text that was asked about twice: the last time

    def _texts(self, problem: int) -> Iterator[tuple[bytes, tuple[int, int]]]:
        for number, heard in enumerate(self.frame.heard):
            for row in (heard.canvas.problem == problem).nonzero()[:, 0].tolist():
                yield _key(heard.canvas.tokens[row, self.pad :]), (number, row)

    def drafts(self, text: torch.Tensor) -> list[tuple[int, int]]:
        """(position, likeliest token) of what was asked about this text."""
        if (place := self._places.get(_key(text))) is None:
            return []
        heard, row = self.frame.heard[place[0]], place[1]
        with torch.inference_mode():
            token, _ = heard.beliefs.best
        return list(zip((heard.at[row] - self.pad).tolist(), token[row].tolist(), strict=True))


def _key(tokens: torch.Tensor) -> bytes:
    return tokens.cpu().numpy().tobytes()
