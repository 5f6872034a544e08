"""Likelihoods of a text: which of its positions are hidden together and predicted from the rest, and which count.

A likelihood is a list of groups of slots, each hidden once inside the finished text. The log p of the slots that
count is summed by block. A new likelihood is a class here that returns its groups.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor

from unmask.core import Rows, Step
from unmask.core.shapes import AtFloat, Float
from unmask.registry import Registry


class Hidden(NamedTuple):
    """One group of the partition."""

    slots: slice  # masked together
    counted: slice  # those of them whose log p counts


class Likelihood(ABC):
    @abstractmethod
    def groups(self, current: slice) -> Sequence[Hidden]:
        """What is predicted again while rows work on the slots `current`."""

    def start(self, current: slice) -> int:
        """The first slot that is hidden: what comes before it does not change while candidates are scored."""
        return min(group.slots.start for group in self.groups(current))


likelihood: Registry[Likelihood] = Registry("likelihood")


@likelihood("block")
@dataclass(frozen=True)
class Block(Likelihood):
    """Eq. 2: the current block, inside the full completion."""

    def groups(self, current: slice) -> Sequence[Hidden]:
        return [Hidden(current, current)]


@likelihood("all-blocks")
@dataclass(frozen=True)
class AllBlocks(Likelihood):
    """Eq. S4: every block so far at once, each scored anew; their sum is the total by itself."""

    def groups(self, current: slice) -> Sequence[Hidden]:
        every = slice(0, current.stop)
        return [Hidden(every, every)]


@likelihood("future-masked")
@dataclass(frozen=True)
class FutureMasked(Likelihood):
    """Eq. S5: the current block, with everything after it hidden too."""

    def groups(self, current: slice) -> Sequence[Hidden]:
        return [Hidden(slice(current.start, None), current)]


def score_blocks(
    rows: Rows, completions: Sequence[Rows], likelihood: Likelihood, step: Step
) -> Float[Tensor, "row block"]:
    """Each row's scores, those of the blocks that are predicted again replaced by the mean over its completions."""
    assert rows.scores is not None
    full = _joined(rows, completions)
    fresh: dict[int, Tensor] = {}
    for group in likelihood.groups(step.span):
        logp = predict(full, group, likelihood.start(step.span))
        blocks = [slot // step.size for slot in range(rows.length)[group.counted]]
        parts = logp.split([len(list(part)) for _, part in groupby(blocks)], dim=1)
        for block, part in zip(dict.fromkeys(blocks), parts, strict=True):
            mean = part.sum(1).unflatten(0, (-1, len(rows))).mean(0)
            fresh[block] = fresh[block] + mean if block in fresh else mean
    return torch.stack([fresh.get(block, old) for block, old in enumerate(rows.scores.unbind(1))], dim=1)


def predict(full: Rows, group: Hidden, start: int) -> AtFloat:
    """log p of the counted slots of finished texts, once the group is hidden in them."""
    at = full.slots[:, group.counted]
    beliefs = full.remask(full.slots[:, group.slots]).ask(at, slice(start, None))
    return beliefs.logp(full.canvas.at(at))


def _joined(rows: Rows, completions: Sequence[Rows]) -> Rows:
    """The first completion of every row, then the second of every row, and so on."""
    if len(completions) == 1:
        return completions[0]
    index = torch.arange(len(rows), device=rows.slots.device).repeat(len(completions))
    tokens = torch.cat([completion.canvas.tokens for completion in completions])
    full = rows.keep(index)
    return replace(full, canvas=replace(full.canvas, tokens=tokens))
