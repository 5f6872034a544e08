"""The paper's likelihoods: what is masked inside a candidate's completion, and which of it is scored.

Each names two slices of the row's list of masks: the columns to mask, and the columns whose log p is summed into the
scores of their blocks. A row's total is the sum over its blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from unmask.core.beliefs import Beliefs
from unmask.core.canvas import Canvas
from unmask.core.schedule import Step
from unmask.core.shapes import Columns, Float, Int

Likelihood = Literal["block", "all-blocks", "future-masked"]


class Reading(NamedTuple):
    hidden: slice
    scored: slice


def block(current: slice) -> Reading:
    """Eq. 2: the current block, re-predicted inside the full completion."""
    return Reading(current, current)


def all_blocks(current: slice) -> Reading:
    """Eq. S4: every block so far at once, each scored anew; their sum is the total by itself."""
    return Reading(slice(0, current.stop), slice(0, current.stop))


def future_masked(current: slice) -> Reading:
    """Eq. S5: the current block, with nothing known of what follows it."""
    return Reading(slice(current.start, None), current)


READINGS: dict[Likelihood, Callable[[slice], Reading]] = {
    "block": block,
    "all-blocks": all_blocks,
    "future-masked": future_masked,
}


def score_blocks(
    denoiser: Callable[[Canvas, Columns], Beliefs],
    likelihood: Likelihood,
    full: Canvas,
    holes: Int[Tensor, "completion at"],
    blocks: Float[Tensor, "row block"],
    step: Step,
) -> Float[Tensor, "row block"]:
    """Each row's scores with those put in that this step reads: all completions in one forward, the mean over a row's.

    `full` holds the first completion of every row, then the second of every row, and so on.
    """
    reading = READINGS[likelihood](step.holes)
    scored = holes[:, reading.scored]
    logp = denoiser(full.remask(holes[:, reading.hidden]), scored).logp(full.at(scored))
    size = step.holes.start // step.block if step.block else step.holes.stop  # of every block but perhaps this one
    fresh = torch.stack([part.sum(1) for part in logp.split(size, dim=1)], dim=1)  # (sample·row, block)
    fresh = fresh.unflatten(0, (-1, len(blocks))).mean(0)
    before = blocks[:, : step.block + 1 - fresh.shape[1]]
    return torch.cat([before, fresh, blocks[:, step.block + 1 :]], dim=1)
