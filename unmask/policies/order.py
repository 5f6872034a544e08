"""Which masked positions a step writes: a rank for each asked position, the highest written first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.core.beliefs import Beliefs
from unmask.core.noise import Noise
from unmask.core.shapes import AtBool, AtFloat, Columns, Int


@dataclass(frozen=True)
class Sight:
    """All an order may look at."""

    beliefs: Beliefs
    logp: AtFloat  # untempered log p of the token each position would be given
    noise: Noise
    step: int
    places: Columns


def confidence(sight: Sight) -> AtFloat:
    return sight.logp


def random(sight: Sight) -> AtFloat:
    return sight.noise.uniform("order", sight.step, sight.places)[:, :, 0]


def left_to_right(sight: Sight) -> AtFloat:
    return -sight.places.to(sight.logp.dtype)


def margin(sight: Sight) -> AtFloat:
    return sight.beliefs.margin


def entropy(sight: Sight) -> AtFloat:
    return -sight.beliefs.entropy


Order = Callable[[Sight], AtFloat]


def foremost(rank: AtFloat, masked: AtBool, quota: int | Int[Tensor, "row 1"]) -> AtBool:
    """The `quota` masked positions of highest rank in each row; ties go to the left."""
    # A masked position may rank at -inf, and must still come before one that is not masked.
    rank = rank.clamp(min=torch.finfo(rank.dtype).min).masked_fill(~masked, -torch.inf)
    ranked = rank.sort(dim=1, descending=True, stable=True).indices
    if isinstance(quota, int):
        return torch.zeros_like(masked).scatter(1, ranked[:, :quota], True) & masked
    early = torch.arange(ranked.shape[1], device=ranked.device) < quota  # of each row its own
    return torch.zeros_like(masked).scatter(1, ranked, early) & masked
