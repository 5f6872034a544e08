"""How unsure the model was of every written position, when it was written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from unmask.core import Canvas
from unmask.runs.drafts import Answers

DIGITS = 6


class Entropies:
    """Of the rows of one problem, in nats: of a written position at its writing, of a mask as asked ahead, else NaN."""

    def __init__(self, canvas: Canvas):
        self.value = torch.full(canvas.tokens.shape, math.nan, dtype=torch.float64)
        self.known: dict[tuple[Any, ...], float] = {}  # by position, token, log p and step: a text may come back

    def see(
        self, new: Canvas, source: torch.Tensor, writes: Sequence[Sequence[Any]], step: int, answers: Answers
    ) -> list[float | None]:
        """Of each write of the rows `new`. What was not asked since the last frame is known from earlier ones."""
        self.value, written = self.value[source], []
        for row, place, token, logp, *when in writes:
            order = when[0] if when else step
            asked = new.tokens[row].masked_fill(new.order[row] >= order, new.mask_id)
            before = self.known.get((place, token, logp, order), float(self.value[row, place]))
            entropy = answers.entropies(asked).get(place, before)
            self.value[row, place] = self.known[place, token, logp, order] = entropy
            written.append(None if math.isnan(entropy) or token == new.mask_id else round(entropy, DIGITS))
        self._look_ahead(new, answers)
        return written

    def _look_ahead(self, new: Canvas, answers: Answers) -> None:
        """Some decoders ask about a row before the frame that shows it."""
        self.value[new.masked] = math.nan
        for row in new.masked.any(1).nonzero()[:, 0].tolist():
            for place, entropy in answers.entropies(new.tokens[row]).items():
                if new.masked[row, place]:
                    self.value[row, place] = entropy
