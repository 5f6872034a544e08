"""Drafts of a token for every asked position, and the orders by which some are written while others are remasked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unmask.core import Beliefs, Rows
from unmask.core.noise import Purpose
from unmask.core.shapes import AtBool, AtFloat, AtTokens, Columns, Int, Steps


@dataclass(frozen=True)
class Draft:
    rows: Rows
    at: Columns
    token: AtTokens
    logp: AtFloat  # untempered
    beliefs: Beliefs
    step: Steps

    @property
    def masked(self) -> AtBool:
        return self.rows.masked(self.at)

    @property
    def fillable(self) -> AtBool:
        """True for masks that are named for the first time: where rows name fewer columns, the last is repeated."""
        masked = self.masked
        masked[:, 1:] &= self.at[:, 1:] != self.at[:, :-1]
        return masked

    def write(self, where: AtBool) -> Rows:
        return self.rows.write(self.at, self.token, where, self.step, self.logp)

    def complete(self, rows: Rows) -> Rows:
        """Return the rows with everything that is still masked filled from this draft."""
        return rows.write(self.at, self.token, rows.masked(self.at), 0, torch.zeros_like(self.logp))


def sample(rows: Rows, at: Columns, step: Steps, temperature: float) -> Draft:
    """Draft the likeliest token at temperature 0, else a draw of softmax(logits / temperature)."""
    beliefs = rows.ask(at)
    token, logp = _draw(rows, beliefs, at, step, temperature)
    return Draft(rows, at, token[:, :, 0], logp[:, :, 0], beliefs, step)


def branch(rows: Rows, at: Columns, span: slice, step: int, temperature: float, count: int) -> Draft:
    """Draw `count` times for each row from its one forward pass; each draw is the draft of a child."""
    beliefs = rows.ask(at, span)
    drawn = _draw(rows, beliefs, at, step, temperature, count)
    token, logp = (each.permute(0, 2, 1).flatten(0, 1) for each in drawn)  # (row, at, draw) → (row·draw, at)
    parent, _ = rows.children(count)
    return Draft(rows.fork(count, step), at[parent], token, logp, beliefs.rows(parent), step)


def redraw(draft: Draft, temperature: float, count: int) -> list[Draft]:
    """Draw `count` more times for a draft's rows, from their own noise and the same forward pass."""
    token, logp = _draw(draft.rows, draft.beliefs, draft.at, draft.step, temperature, count + 1, "sample")
    return [replace(draft, token=token[:, :, i], logp=logp[:, :, i]) for i in range(1, count + 1)]


def predict(full: Rows, hidden: Int[Tensor, "row hidden"], at: Columns, span: slice | None = None) -> Draft:
    """Hide columns of finished texts and draft the texts' own tokens at some of them, with their log p."""
    rows, token = full.remask(hidden), full.canvas.at(at)
    beliefs = rows.ask(at, span)
    return Draft(rows, at, token, beliefs.logp(token), beliefs, 0)


def _draw(
    rows: Rows,
    beliefs: Beliefs,
    at: Columns,
    step: Steps,
    temperature: float,
    draws: int = 1,
    purpose: Purpose = "token",
) -> tuple[Tensor, Tensor]:
    """Return tokens and their untempered log p, (row, at, draw)."""
    if temperature == 0:
        token, logp = beliefs.best
        return token[:, :, None].expand(-1, -1, draws), logp[:, :, None].expand(-1, -1, draws)
    return beliefs.draw(rows.uniform(purpose, step, at, draws), temperature)


# An order ranks the positions of a draft: those of highest rank are written first.
ORDERS: dict[str, Callable[[Draft], AtFloat]] = {
    "confidence": lambda draft: draft.logp,
    "random": lambda draft: draft.rows.uniform("order", draft.step, draft.at)[:, :, 0],
    "left-to-right": lambda draft: -draft.at.to(draft.logp.dtype),
    "margin": lambda draft: draft.beliefs.margin,
    "entropy": lambda draft: -draft.beliefs.entropy,
}


def top(rank: AtFloat, masked: AtBool, count: int | Int[Tensor, "row 1"]) -> AtBool:
    """True for the `count` masked positions of highest rank in each row; ties go to the left."""
    # A masked position may rank at -inf, and must still come before one that is not masked.
    rank = rank.clamp(min=torch.finfo(rank.dtype).min).masked_fill(~masked, -torch.inf)
    ranked = rank.sort(dim=1, descending=True, stable=True).indices
    early = torch.arange(ranked.shape[1], device=ranked.device) < count
    return torch.zeros_like(masked).scatter(1, ranked, early.expand_as(masked)) & masked
