"""Which token each position would be given."""

from __future__ import annotations

from torch import Tensor

from unmask.core.beliefs import Beliefs
from unmask.core.noise import Noise, Purpose
from unmask.core.shapes import Columns, Float, Int


def pick(
    beliefs: Beliefs,
    temperature: float,
    noise: Noise,
    step: int,
    places: Columns,
    draws: int = 1,
    purpose: Purpose = "token",
) -> tuple[Int[Tensor, "row at draw"], Float[Tensor, "row at draw"]]:
    """The likeliest token at temperature 0, else draws of softmax(l / temperature); log p is untempered."""
    if temperature == 0:
        token, logp = beliefs.best
        return token[:, :, None].expand(-1, -1, draws), logp[:, :, None].expand(-1, -1, draws)
    return beliefs.draw(noise.uniform(purpose, step, places, draws), temperature)
