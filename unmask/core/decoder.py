"""The contract of decoders, and the frames they yield."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from unmask.core.canvas import Canvas
from unmask.core.denoiser import Exchange
from unmask.core.schedule import Schedule
from unmask.core.shapes import Bool, Float, Int, PerRow, Score
from unmask.registry import Registry

if TYPE_CHECKING:
    from unmask.core.rows import Rows


@dataclass(frozen=True)
class Branch:
    """The candidates of one search step, by problem, then parent, then draw."""

    canvas: Canvas  # each candidate after its writes
    completion: Int[Tensor, "row pos"]  # the full completion it was scored in
    parent: PerRow  # its row in the previous frame
    draw: PerRow  # its number among its parent's children
    score: Score
    blocks: Float[Tensor, "row block"]  # the score of each block; 0 for those not reached
    kept: Bool[Tensor, " row"]  # True for candidates that survive

    @property
    def survivors(self) -> PerRow:
        """The candidate that each row of the frame is: problem by problem, best first, ties as they were drawn."""
        kept = self.kept.nonzero()[:, 0]
        kept = kept[self.score[kept].sort(descending=True, stable=True).indices]
        return kept[self.canvas.problem[kept].sort(stable=True).indices]


@dataclass(frozen=True)
class Frame:
    """The rows after a step. The last frame's rows are the results."""

    canvas: Canvas
    score: Score  # each row's score: a search's total, or the sum of log p along a single path
    step: int
    branch: Branch | None = None
    group: PerRow | None = None  # rows of one group compete; None: those of one problem
    parent: PerRow | None = None  # the row of the previous frame that each row was made from; None: the same row
    forward_passes: Int[Tensor, " problem"] | None = None  # forward passes so far, by problem; counted by the session
    exchanges: tuple[Exchange, ...] = ()  # model calls since the previous frame, where a trace is kept
    ended: Frame | None = None  # final rows of problems that end here while others continue

    def rows(self, index: Int[Tensor, " some"]) -> Frame:
        """Return some of its rows, without how they came about."""
        group = None if self.group is None else self.group[index]
        return Frame(self.canvas.rows(index), self.score[index], self.step, group=group)

    def joined(self, more: Frame) -> Frame:
        """Append the rows of a frame of the same batch, without how they came about."""
        group = None if self.group is None or more.group is None else torch.cat([self.group, more.group])
        score = torch.cat([self.score, more.score])
        return Frame(self.canvas.joined(more.canvas), score, max(self.step, more.step), group=group)


class Decoder(ABC):
    """The base of all decoders. A decoder is a frozen dataclass whose fields are its settings.

    Everything that streaming, batching, stopping and reporting need to know about a decoder is stated here, so that a
    decoder of another package is treated like ours. The defaults claim nothing and are always safe.
    """

    single_path: ClassVar[bool] = False  # it has one row per problem from beginning to end
    commits_only: ClassVar[bool] = False  # a written token is neither masked again nor replaced
    ends_together: ClassVar[bool] = False  # all problems of a batch end at the same step
    announces_ends: ClassVar[bool] = False  # its frames say in `ended` which problems end before others

    @abstractmethod
    def __call__(self, rows: Rows) -> Iterator[Frame]:
        """Yield a frame per step. It is given one row per problem, all equally long, and ends when none has masks."""

    @abstractmethod
    def max_forward_passes(self, length: int) -> int:
        """Return an upper bound of the forward passes for one problem with `length` masks."""

    def resolved(self, length: int) -> Decoder:
        """Return the decoder with every default that depends on the number of masks written out, or refuse it."""
        return _inside_changed(self, lambda inner: inner.resolved(length))

    @property
    def choice(self) -> str:
        """How the answer is chosen among the final rows: `score`, `majority` or `weighted`."""
        return "score"

    @property
    def writer(self) -> Decoder:
        """The decoder that writes the rows: itself, or the one that it samples from."""
        return self


class Scheduled(Decoder):
    """The base of decoders whose settings `block` and, if they have it, `steps` are those of a schedule."""

    block: int | None
    steps: int | None = None

    def resolved(self, length: int) -> Decoder:
        schedule = Schedule.plan(length, self.block, self.steps)
        assert is_dataclass(self)
        sizes = [field.name for field in fields(self) if field.name in ("block", "steps")]
        return replace(self, **{name: getattr(schedule, name) for name in sizes})

    def max_forward_passes(self, length: int) -> int:
        return Schedule.plan(length, self.block, self.steps).steps


decoder: Registry[Decoder] = Registry("decoder")


def resolve(chosen: Decoder, block: int | None, length: int) -> Decoder:
    """Write out every default of a decoder for a model with blocks of `block` (None: none) and `length` masks."""
    return _with_block(chosen, block, length).resolved(length)


def _with_block(chosen: Decoder, block: int | None, length: int) -> Decoder:
    """Set the block size of a block-causal model wherever the decoder, or one inside it, leaves `block` open."""
    if block is None or block > length:
        return chosen
    if is_dataclass(chosen) and getattr(chosen, "block", block) is None:
        chosen = replace(chosen, block=block)
    return _inside_changed(chosen, lambda inner: _with_block(inner, block, length))


def _inside_changed(chosen: Decoder, change: Callable[[Decoder], Decoder]) -> Decoder:
    """Change the settings of a decoder that are decoders themselves."""
    if not is_dataclass(chosen):
        return chosen
    settings = {field.name: getattr(chosen, field.name) for field in fields(chosen)}
    return replace(chosen, **{name: change(value) for name, value in settings.items() if isinstance(value, Decoder)})
