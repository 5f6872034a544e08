"""The likeliest token of every masked position when the model was last asked about it, and how that changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.core import Canvas, Frame
from unmask.core.shapes import Tokens

NONE = -1


@dataclass(frozen=True)
class Drafts:
    token: Tokens  # NONE where nothing was asked, or something is written

    @classmethod
    def blank(cls, canvas: Canvas) -> Drafts:
        return cls(torch.full_like(canvas.tokens, NONE))

    def after(self, old: Canvas, new: Canvas, answers: Answers) -> tuple[Drafts, list[list[int]]]:
        """Of the rows `new`, each made from the row of `old` at its place, and [row, position, token] that changed."""
        before = self.token.masked_fill(~new.masked, NONE)
        token = before.clone()
        for row in new.masked.any(1).nonzero()[:, 0].tolist():
            drafts = answers.drafts(new.tokens[row]) or answers.drafts(old.tokens[row])
            if drafts is not None:
                at, likeliest = drafts
                masked = new.masked[row, at]
                token[row, at[masked]] = likeliest[masked]
        row, place = (token != before).nonzero().unbind(1)
        return Drafts(token), torch.stack([row, place, token[row, place]], 1).tolist()

    def rows(self, source: Tensor) -> Drafts:
        return Drafts(self.token[source])


class Answers:
    """What the model said of one problem's texts since the frame before, looked up by text."""

    def __init__(self, frame: Frame, problem: int, pad: int):
        self.frame, self.pad = frame, pad
        self._places = dict(self._texts(problem))  # a text that was asked about twice: the last time
        self._likeliest: dict[int, tuple[Tensor, Tensor]] = {}

    def _texts(self, problem: int) -> Iterator[tuple[bytes, tuple[int, int]]]:
        for number, exchange in enumerate(self.frame.exchanges):
            tokens = exchange.canvas.tokens[:, self.pad :].cpu()
            for row in (exchange.canvas.problem == problem).nonzero()[:, 0].tolist():
                yield _key(tokens[row]), (number, row)

    def drafts(self, text: Tensor) -> tuple[Tensor, Tensor] | None:
        """The positions that were asked about in this text, and the likeliest token of each."""
        if (place := self._places.get(_key(text))) is None:
            return None
        at, likeliest = self._answer(place[0])
        return at[place[1]], likeliest[place[1]]

    def _answer(self, number: int) -> tuple[Tensor, Tensor]:
        if number not in self._likeliest:
            exchange = self.frame.exchanges[number]
            with torch.inference_mode():
                likeliest, _ = exchange.beliefs.best
            self._likeliest[number] = exchange.at.cpu() - self.pad, likeliest.cpu()
        return self._likeliest[number]

    def entropies(self, text: Tensor) -> dict[int, float]:
        """By position, of what was asked about this text."""
        if (place := self._places.get(_key(text))) is None:
            return {}
        exchange, row = self.frame.exchanges[place[0]], place[1]
        with torch.inference_mode():
            values = exchange.beliefs.entropy[row].tolist()
        return dict(zip((exchange.at[row] - self.pad).tolist(), values, strict=True))


def _key(tokens: Tensor) -> bytes:
    return tokens.numpy().tobytes()
