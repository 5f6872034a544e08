"""Likelihoods of a text: groups of slots, each hidden once inside the finished text and predicted from the rest.

A new likelihood is a class here that returns its groups.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import ceil
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from unmask.core import Decoder, Rows, Step
from unmask.core.noise import mix
from unmask.core.shapes import AtFloat, Columns, Float
from unmask.errors import UnmaskError, check_above, check_at_least, check_between
from unmask.policies.remasking import predict
from unmask.registry import Registry

Slots = slice | tuple[int, ...]
NOTHING: Slots = ()  # a group that hides nothing counts log p as it was at writing


class Hidden(NamedTuple):
    slots: Slots  # masked together
    counted: Slots  # the slots of the group whose log p counts
    weight: float = 1.0  # weight of that log p in the sum


@dataclass(frozen=True)
class Likelihood(ABC):
    """A partition of slots into groups that are hidden together and predicted from the rest of the text."""

    rescores: ClassVar[bool] = False  # it scores earlier blocks again
    needs_future: ClassVar[bool] = False  # it hides a whole block and predicts it from what follows

    @abstractmethod
    def groups(self, current: slice) -> Sequence[Hidden]:
        """Return the groups that are predicted while rows work on the slots `current`."""

    def start(self, current: slice) -> int:
        """Return the first slot that is hidden: those before it do not change while candidates are scored."""
        hidden = [slot_numbers(group.slots, current.stop) for group in self.groups(current)]
        return min((slots[0] for slots in hidden if slots), default=current.start)

    def forward_passes(self, current: slice) -> int:
        """Return the forward passes that the score of one text takes."""
        return sum(group.slots != NOTHING for group in self.groups(current))


likelihood: Registry[Likelihood] = Registry("likelihood")


@likelihood("block")
class Block(Likelihood):
    """Eq. 2: the current block, inside the full completion."""

    needs_future = True

    def groups(self, current: slice) -> Sequence[Hidden]:
        return [Hidden(current, current)]


@likelihood("all-blocks")
class AllBlocks(Likelihood):
    """Eq. S4: every block so far at once, each scored again; their sum is the total by itself."""

    rescores = True

    def groups(self, current: slice) -> Sequence[Hidden]:
        every = slice(0, current.stop)
        return [Hidden(every, every)]


@likelihood("future-masked")
class FutureMasked(Likelihood):
    """Eq. S5: the current block, with everything after it hidden too."""

    needs_future = True

    def groups(self, current: slice) -> Sequence[Hidden]:
        return [Hidden(slice(current.start, None), current)]


@likelihood("interleaved")
@dataclass(frozen=True)
class Interleaved(Likelihood):
    """The current block in combs of every n-th slot: a hidden slot keeps its neighbours in sight."""

    combs: int = 2  # n: forward passes per candidate

    def __post_init__(self) -> None:
        check_at_least(1, combs=self.combs)

    def groups(self, current: slice) -> Sequence[Hidden]:
        firsts = range(current.start, current.stop)[: self.combs]
        return [Hidden(comb, comb) for comb in (slice(first, current.stop, self.combs) for first in firsts)]


@likelihood("leave-out")
@dataclass(frozen=True)
class LeaveOut(Likelihood):
    """The current block, a few consecutive slots at a time; one at a time, this is the pseudo-log-likelihood."""

    group: int = 1  # slots hidden together

    def __post_init__(self) -> None:
        check_at_least(1, group=self.group)

    def groups(self, current: slice) -> Sequence[Hidden]:
        firsts = range(current.start, current.stop, self.group)
        return [Hidden(part, part) for part in (slice(i, min(i + self.group, current.stop)) for i in firsts)]


@likelihood("random-masks")
@dataclass(frozen=True)
class RandomMasks(Likelihood):
    """The current block, a random share of it at a time: the same masks for every text of a length."""

    ratio: float = 0.5  # share of the slots that is hidden together
    n: int = 4  # masks

    def __post_init__(self) -> None:
        check_above(0, ratio=self.ratio)
        check_between(0, 1, ratio=self.ratio)
        check_at_least(1, n=self.n)

    def groups(self, current: slice) -> Sequence[Hidden]:
        size = current.stop - current.start
        masked = ceil(self.ratio * size)
        numbers = mix(torch.arange(self.n)[:, None], 1 + torch.arange(size))
        masks = [sorted(row[:masked]) for row in numbers.argsort(dim=1).tolist()]
        parts = [tuple(current.start + slot for slot in mask) for mask in masks]
        return [Hidden(part, part, size / (masked * self.n)) for part in parts]


@likelihood("path")
class PathLikelihood(Likelihood):
    """log p of the current block as it was when each position was written. Costs nothing."""

    def groups(self, current: slice) -> Sequence[Hidden]:
        return [Hidden(NOTHING, current)]


@likelihood("sum")
@dataclass(frozen=True)
class Sum(Likelihood):
    """Two likelihoods added; a third by nesting."""

    first: Likelihood = field(default_factory=lambda: Interleaved(2))  # added to the second
    second: Likelihood = field(default_factory=lambda: Interleaved(3))  # may be a sum itself

    def __post_init__(self) -> None:
        likelihood.coerce(self, "first", "second")
        for name in ("first", "second"):
            if getattr(self, name).rescores:
                raise UnmaskError(f"{name} must not be all-blocks: it scores earlier blocks again, others do not")

    def groups(self, current: slice) -> Sequence[Hidden]:
        return [*self.first.groups(current), *self.second.groups(current)]


def blind_likelihood(decoder: object) -> str | None:
    """Return the likelihood of a decoder, or of one inside it, that is of no use to a model that sees no future."""
    for value in getattr(decoder, "__dict__", {}).values():
        if isinstance(value, Likelihood) and value.needs_future:
            return likelihood.spec(value)
        if isinstance(value, Decoder) and (name := blind_likelihood(value)):
            return name
    return None


def score_blocks(
    rows: Rows, completions: Sequence[Rows], likelihood: Likelihood, step: Step
) -> Float[Tensor, "row block"]:
    """Return the rows' scores by block, where those that are predicted again are means over the completions."""
    assert rows.scores is not None
    groups = likelihood.groups(step.span)
    logps = _predict_groups(_joined(rows, completions), groups, likelihood.start(step.span))
    fresh: dict[int, Tensor] = {}
    for group, logp in zip(groups, logps, strict=True):
        blocks = [(slot + step.lead) // step.size for slot in slot_numbers(group.counted, rows.length)]
        parts = logp.split([len(list(part)) for _, part in groupby(blocks)], dim=1)
        for block, part in zip(dict.fromkeys(blocks), parts, strict=True):
            mean = part.sum(1).unflatten(0, (-1, len(rows))).mean(0)
            fresh[block] = fresh[block] + mean if block in fresh else mean
    return torch.stack([fresh.get(block, old) for block, old in enumerate(rows.scores.unbind(1))], dim=1)


def predict_slots(rows: Rows, likelihood: Likelihood) -> AtFloat:
    """Return log p of every slot of finished texts, the whole answer taken as one block."""
    groups = likelihood.groups(slice(0, rows.length))
    logp = rows.canvas.logp.new_zeros(rows.slots.shape)
    for group, part in zip(groups, _predict_groups(rows.leave(), groups, start=0), strict=True):
        logp[:, group.counted] += part.to(logp.dtype)
    return logp


def _predict_groups(full: Rows, groups: Sequence[Hidden], start: int) -> list[AtFloat]:
    """Hide each group in finished texts and return log p of the slots that count. One call for all groups."""
    written = full.canvas.logp.gather(1, full.slots)
    logps = [written[:, group.counted] for group in groups]
    if hiding := [number for number, group in enumerate(groups) if group.slots != NOTHING]:
        hidden = _columns(full, [groups[number].slots for number in hiding])
        at = _columns(full, [groups[number].counted for number in hiding])
        tiled = full if len(hiding) == 1 else full.keep(torch.arange(len(full), device=at.device).repeat(len(hiding)))
        again = predict(tiled, hidden, at, slice(start, None)).logp.split(len(full))
        for number, logp in zip(hiding, again, strict=True):
            logps[number] = logp[:, : logps[number].shape[1]]
    return [logp * group.weight for logp, group in zip(logps, groups, strict=True)]


def _columns(rows: Rows, groups: Sequence[Slots]) -> Columns:
    """Return the columns of groups of slots: of the first group for every row, then of the second, and so on."""
    slots = torch.tensor(equally_long([slot_numbers(group, rows.length) for group in groups]))
    slots = slots.to(rows.slots.device, non_blocking=True)  # nothing waits for the device
    return rows.slots[:, slots].transpose(0, 1).flatten(0, 1)


def slot_numbers(slots: Slots, length: int) -> Sequence[int]:
    return range(length)[slots] if isinstance(slots, slice) else slots


def equally_long(parts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Repeat the last number of each part, so that all fit one tensor."""
    most = max(map(len, parts))
    return [[*part, *part[-1:] * (most - len(part))] for part in map(list, parts)]


def _joined(rows: Rows, completions: Sequence[Rows]) -> Rows:
    """Join completions: the first of every row, then the second of every row, and so on."""
    if len(completions) == 1:
        return completions[0]
    full = rows.keep(torch.arange(len(rows), device=rows.slots.device).repeat(len(completions)))
    tokens = torch.cat([completion.canvas.tokens for completion in completions])
    return replace(full, canvas=replace(full.canvas, tokens=tokens))
