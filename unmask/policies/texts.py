"""Texts being searched, with the second choice that each position had when it was written."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unmask.core import Frame, Rows
from unmask.core.shapes import AtFloat, AtTokens, Int, PerRow, Score


@dataclass(frozen=True)
class Texts:
    """Rows and the second choices they had. `at` is every slot."""

    rows: Rows
    problem: PerRow  # which of the first rows each belongs to
    second: AtTokens
    odds: AtFloat  # log p of the second choice minus that of the first; -inf where it must not be taken (again)
    prior: Score  # the sum of the odds that were accepted on the way to this text

    @classmethod
    def blank(cls, rows: Rows, problem: PerRow, prior: Score) -> Texts:
        odds = rows.canvas.logp.new_full(rows.slots.shape, -torch.inf)
        return cls(rows, problem, torch.zeros_like(rows.slots), odds, prior)

    @property
    def step(self) -> Int[Tensor, "row at"]:
        """The step that wrote each slot."""
        return self.rows.canvas.order.gather(1, self.rows.slots)

    @property
    def last(self) -> int:
        return int(self.step.max())

    def frame(self, more: Texts) -> Frame:
        """These and others that are being written."""
        score = torch.cat([self.rows.score, more.rows.score])
        return replace(self.rows.joined(more.rows).frame(max(self.last, more.last)), score=score)

    def joined(self, more: Texts) -> Texts:
        names = ("problem", "second", "odds", "prior")
        return Texts(self.rows.joined(more.rows), *(torch.cat([getattr(self, n), getattr(more, n)]) for n in names))

    def deviate(self, text: PerRow, slot: PerRow) -> tuple[Texts, Texts]:
        """The texts with these second choices struck out, and new ones that begin with them."""
        rows, odds = replace(self.rows.keep(text), scores=None, kept=None), self.odds[text, slot]
        column, step = rows.slots.gather(1, slot[:, None]), self.step[text]
        began = step.gather(1, slot[:, None])
        logp = rows.canvas.logp.gather(1, column) + odds[:, None]
        rows = rows.remask(torch.where(step >= began, rows.slots, column))
        token = self.second[text, slot][:, None]
        rows = rows.write(column, token, torch.ones_like(token, dtype=torch.bool), began[:, 0], logp)
        fresh = Texts.blank(rows, self.problem[text], self.prior[text] + odds)
        return replace(self, odds=self.odds.index_put((text, slot), odds.new_tensor(-torch.inf))), fresh
