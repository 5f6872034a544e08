"""The paper's likelihoods: what is masked inside a candidate's completion, and which of it is scored.

Each names two slices of the row's list of masks: the columns to mask, and the columns whose log p is summed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

Likelihood = Literal["block", "all-blocks", "future-masked"]


class Reading(NamedTuple):
    hidden: slice
    scored: slice
    sums: bool  # whether the scores of blocks add up; else the newest one is the total


def block(current: slice) -> Reading:
    """Eq. 2: the current block, re-predicted inside the full completion."""
    return Reading(current, current, True)


def all_blocks(current: slice) -> Reading:
    """Eq. S4: every block so far at once; it is the total by itself."""
    return Reading(slice(0, current.stop), slice(0, current.stop), False)


def future_masked(current: slice) -> Reading:
    """Eq. S5: the current block, with nothing known of what follows it."""
    return Reading(slice(current.start, None), current, True)


READINGS: dict[Likelihood, Callable[[slice], Reading]] = {
    "block": block,
    "all-blocks": all_blocks,
    "future-masked": future_masked,
}
