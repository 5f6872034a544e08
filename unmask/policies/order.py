"""Which masked positions a step writes: a rank for each position of a draft, the highest written first."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from unmask.core.shapes import AtBool, AtFloat, Int
from unmask.policies.draft import Draft

Order = Callable[[Draft], AtFloat]


def confidence(draft: Draft) -> AtFloat:
    return draft.logp


def random(draft: Draft) -> AtFloat:
    return draft.rows.uniform("order", draft.step, draft.at)[:, :, 0]


def left_to_right(draft: Draft) -> AtFloat:
    return -draft.at.to(draft.logp.dtype)


def margin(draft: Draft) -> AtFloat:
    return draft.beliefs.margin


def entropy(draft: Draft) -> AtFloat:
    return -draft.beliefs.entropy


def top(rank: AtFloat, masked: AtBool, count: int | Int[Tensor, "row 1"]) -> AtBool:
    """The `count` masked positions of highest rank in each row; ties go to the left."""
    # A masked position may rank at -inf, and must still come before one that is not masked.
    rank = rank.clamp(min=torch.finfo(rank.dtype).min).masked_fill(~masked, -torch.inf)
    ranked = rank.sort(dim=1, descending=True, stable=True).indices
    if isinstance(count, int):
        return torch.zeros_like(masked).scatter(1, ranked[:, :count], True) & masked
    early = torch.arange(ranked.shape[1], device=ranked.device) < count
    return torch.zeros_like(masked).scatter(1, ranked, early) & masked
