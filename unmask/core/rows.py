"""Rows: the hypotheses of a batch and everything that belongs to them, as one immutable value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from unmask.core.beliefs import Beliefs
from unmask.core.cache import CacheView, distinct
from unmask.core.canvas import Canvas
from unmask.core.decoder import Branch, Frame
from unmask.core.denoiser import Denoiser
from unmask.core.noise import Noise, Purpose
from unmask.core.schedule import Schedule
from unmask.core.shapes import AtBool, AtFloat, AtTokens, Bool, Columns, Float, Int, PerRow, Score, Steps, Tokens
from unmask.errors import UnmaskError


@runtime_checkable
class Judge(Protocol):
    """Checks finished texts, given as the numbers of their problems in the batch and their ids without padding."""

    def __call__(self, problem: Sequence[int], ids: Sequence[Sequence[int]]) -> Sequence[tuple[float, range]]:
        """Return each text's score, 0 if it fails, 1 if it passes, and the positions that are wrong, if known."""
        ...

    def cost(self, problem: int) -> tuple[int, float]:
        """Return the number of texts of a problem that were checked, and the seconds that took."""
        ...


class Verdicts(NamedTuple):
    """The verdicts of a check on the rows."""

    score: Score  # 1 passes, 0 fails, between them is partly right
    wrong: AtBool  # slots inside the part of the text that is wrong; none where it is not known

    @property
    def passed(self) -> Bool[Tensor, " row"]:
        return self.score >= 1


@dataclass(frozen=True)
class Rows:
    """The hypotheses of a batch. Every method returns new rows and changes nothing that another one can observe.

    `at` is always columns of the canvas, (row, at); a span is a slice of each row's `slots`.
    """

    canvas: Canvas
    noise: Noise
    slots: Columns  # the columns that each row has to fill, left to right
    group: PerRow  # rows of one group compete: those of one problem, or of one sample of it
    model: Denoiser
    scores: Float[Tensor, "row block"] | None = None  # scores by block, where a search sets them
    cache: CacheView | None = None  # cached keys and values of the block that rows work on
    lead: int | None = None  # positions of the first block that are given, for a block-causal model
    judge: Judge | None = None  # what checks finished texts, where the user or the task has a check

    @classmethod
    def start(cls, canvas: Canvas, model: Denoiser, seed: int | Sequence[int] = 0, judge: Judge | None = None) -> Rows:
        leads = set(leads_of(canvas, model.block_size))
        if len(leads) > 1:
            raise UnmaskError(
                f"these prompts end at different places of the model's blocks of {model.block_size}: "
                "decode them one by one"
            )
        return cls(canvas, Noise.of(canvas, seed), canvas.slots, canvas.problem, model, lead=leads.pop(), judge=judge)

    def __len__(self) -> int:
        return len(self.canvas)

    @property
    def length(self) -> int:
        """The number of slots of each row."""
        return self.slots.shape[1]

    @property
    def score(self) -> Score:
        """The sum of the scores a search has set, else of log p of what was written."""
        return self.canvas.sum_logp(self.slots) if self.scores is None else self.scores.sum(1)

    @property
    def unfinished(self) -> Int[Tensor, " some"]:
        """The numbers of the rows that still have masks."""
        return self.masked(self.slots).any(1).nonzero()[:, 0]

    def masked(self, at: Columns) -> AtBool:
        return self.canvas.at(at) == self.canvas.mask_id

    def open(self, span: slice, count: int) -> Columns:
        """Return the first `count` masked columns of the span; a row that has fewer gets written ones after them."""
        at = self.slots[:, span]
        written = (~self.masked(at)).byte()
        return at.gather(1, written.sort(dim=1, stable=True).indices[:, :count])

    def plan(self, block: int | None = None, steps: int | None = None) -> Schedule:
        """Return the schedule. For a block-causal model blocks are counted from position 0, as its own blocks are.

        A block that covers the whole answer stands for "no blocks"; such a model then uses its own.
        """
        size = self.model.block_size
        if size is None or self.lead is None:
            return Schedule.plan(self.length, block, steps)
        block = size if block is None or (block >= self.length and block < size) else block
        return Schedule.align(self.length, block, steps, self.lead % block)

    def beyond(self, span: slice) -> slice:
        """Return the slots after a span that the model sees when it predicts the span."""
        size = self.model.block_size
        if size is None or self.lead is None:
            return slice(span.stop, self.length)
        return slice(span.stop, min(self.length, -(-(self.lead + span.stop) // size) * size - self.lead))

    def enter(self, span: slice) -> Rows:
        """Begin a step on these slots. Until a different span is entered, only they are written."""
        refresh, cache = self.model.refresh, self.cache
        if cache is not None and cache.span == span and (refresh is None or cache.age < refresh):
            return replace(self, cache=replace(cache, age=cache.age + 1))
        return replace(self, cache=CacheView.start(self.canvas, self.slots[:, span], span, cache))

    def leave(self) -> Rows:
        """Return the rows outside of any span, where every slot may be written."""
        return replace(self, cache=None)

    def advance(self, size: int) -> tuple[Rows, Columns]:
        """Begin a step in which every row works on its own first unfinished block of `size` slots.

        The columns of a short last block repeat its last one, those of a short first block its first.
        """
        lead = (self.lead or 0) % size
        number = (self.masked(self.slots).byte().argmax(1) + lead) // size
        slot = number[:, None] * size - lead + torch.arange(size, device=number.device)
        window = self.slots.gather(1, slot.clamp_(min=0, max=self.length - 1))
        cache = self.cache or CacheView.start(self.canvas, window, None, None)
        if self.model.refresh is not None:
            blocks = [(size, block) for block in number.tolist()]
            cache = cache.advanced(self.canvas, blocks, window, self.model.refresh)
        return replace(self, cache=cache), window

    def ask(self, at: Columns, span: slice | None = None) -> Beliefs:
        """Return the model's beliefs at columns of the current span, or of a wider one that is named for this call."""
        cache = self.cache
        if cache is not None and span is not None:
            cache = cache.wider(self.slots[:, span])
        return self.model(self.canvas, at, cache)

    def check(self) -> Verdicts:
        """Return what the check says of these finished rows. Without a check none passes and nothing is wrong."""
        if self.judge is None:
            return Verdicts(self.canvas.logp.new_zeros(len(self)), torch.zeros_like(self.slots, dtype=torch.bool))
        scores, wrong = zip(*judged(self.judge, self.canvas), strict=True)
        places = self.canvas.places(self.slots)
        start, stop = places.new_tensor([[part.start, part.stop] for part in wrong]).T[:, :, None]
        return Verdicts(self.canvas.logp.new_tensor(scores), (places >= start) & (places < stop))

    def uniform(self, purpose: Purpose, step: Steps, at: Columns, draws: int = 1) -> Tensor:
        """Return the rows' random numbers for these columns, (row, at, draw)."""
        return self.noise.uniform(purpose, step, self.canvas.places(at), draws)

    def write(self, at: Columns, token: AtTokens, where: AtBool, step: Steps, logp: AtFloat) -> Rows:
        return replace(self, canvas=self.canvas.write(at, token, where, step, logp))

    def remask(self, at: Columns) -> Rows:
        return replace(self, canvas=self.canvas.remask(at))

    def with_scores(self, scores: Float[Tensor, "row block"]) -> Rows:
        return replace(self, scores=scores)

    def fork(self, count: int, step: int) -> Rows:
        """Return `count` children of each row, the first with its parent's noise. Fork at most once per step."""
        parent, draw = self.children(count)
        return replace(self.keep(parent), noise=self.noise.children(parent, draw, step))

    def children(self, count: int) -> tuple[PerRow, PerRow]:
        """Return the parent of every child of a fork, and its number among its parent's children."""
        parent = torch.arange(len(self), device=self.slots.device).repeat_interleave(count)
        return parent, torch.arange(count, device=parent.device).repeat(len(self))

    def keep(self, index: Int[Tensor, " new"]) -> Rows:
        """Select rows to prune, reorder or repeat: row i of the result is row index[i]."""
        canvas, noise, slots, group = (
            self.canvas.rows(index),
            self.noise.rows(index),
            self.slots[index],
            self.group[index],
        )
        scores = None if self.scores is None else self.scores[index]
        cache = self.cache and self.cache.take(index)
        return Rows(canvas, noise, slots, group, self.model, scores, cache, self.lead, self.judge)

    def put(self, index: Int[Tensor, " some"], rows: Rows) -> Rows:
        """Put rows that were taken by `only` back where they came from."""
        if len(rows) == len(self):
            return rows
        cache = self.cache and rows.cache and self.cache.put(index, rows.cache)
        return replace(self, canvas=self.canvas.put(index, rows.canvas), cache=cache)

    def only(self, index: Int[Tensor, " some"]) -> Rows:
        """Take some of the rows, in their own order and none twice, to be put back by `put`."""
        if len(index) == len(self):
            return self
        rows = self.keep(index)
        if self.cache is None or self.model.refresh is None:
            return rows
        return replace(rows, cache=self.cache.set_aside(index))

    def distinct(self) -> tuple[Int[Tensor, " alone"], PerRow]:
        """Return the first of every set of rows of one group with the same text, and the number of each row's set."""
        first, copies = distinct(self.canvas, self.group[:, None])
        return self.group.new_tensor(first), self.group.new_tensor(copies)

    def samples(self, count: int, which: range | None = None) -> Rows:
        """Return `count` independent copies of each row, or `which` of them.

        Sample i has the noise of a run under `reseed(seed, i)`.
        """
        which = range(count) if which is None else which
        parent, number = self.children(len(which))
        rows, sample = self.keep(parent), number + which.start
        return replace(rows, noise=rows.noise.again(sample), group=rows.group * count + sample)

    def joined(self, rows: Rows) -> Rows:
        """Append rows of the same problems. The result is outside of any span."""
        canvas, noise = self.canvas.joined(rows.canvas), self.noise.joined(rows.noise)
        slots, group = torch.cat([self.slots, rows.slots]), torch.cat([self.group, rows.group])
        scores = None if self.scores is None or rows.scores is None else torch.cat([self.scores, rows.scores])
        return Rows(canvas, noise, slots, group, self.model, scores, lead=self.lead, judge=self.judge)

    def best(self, count: int, copy: PerRow | None = None, verdict: Score | None = None) -> Int[Tensor, " best"]:
        """Return the `count` best rows of each group, the earlier of equals; of those with equal `copy` the best.

        Rows of a higher verdict come before all others.
        """
        ranked = self.score.sort(descending=True, stable=True).indices
        if verdict is not None:
            ranked = ranked[verdict[ranked].sort(descending=True, stable=True).indices]
        if copy is not None:
            ranked = ranked[torch.isin(ranked, first_of_each(copy, ranked, 1))]
        return first_of_each(self.group, ranked, count)

    def prune(
        self, best: Int[Tensor, " best"], step: int, parent: PerRow, draw: PerRow, completion: Tokens
    ) -> tuple[Rows, Frame]:
        """Keep the candidates `best`; the frame shows all of them, with the completions they were scored in."""
        assert self.scores is not None
        kept = torch.zeros_like(parent, dtype=torch.bool).scatter(0, best, True)
        branch = Branch(self.canvas, completion, parent, draw, self.score, self.scores, kept)
        rows = self.keep(best)
        return rows, Frame(rows.canvas, rows.score, step, branch, rows.group, parent[best])

    def frame(self, step: int) -> Frame:
        return Frame(self.canvas, self.score, step, group=self.group)

    def after(self, frame: Frame) -> Rows:
        """Return the rows of a later frame, outside of any span, with the frame's scores."""
        group = frame.canvas.problem if frame.group is None else frame.group
        rows = self.leave().keep(torch.searchsorted(self.group, group))
        return replace(rows, canvas=frame.canvas, scores=frame.score[:, None])


def judged(judge: Judge, canvas: Canvas) -> Sequence[tuple[float, range]]:
    """Return what a judge says of the rows of a canvas."""
    tokens, pads = canvas.tokens.tolist(), canvas.pad.tolist()
    return judge(canvas.problem.tolist(), [row[pad:] for row, pad in zip(tokens, pads, strict=True)])


def first_of_each(group: PerRow, ranked: Int[Tensor, " some"], count: int) -> Int[Tensor, " best"]:
    """Return the first `count` of each group among ranked row numbers, group by group."""
    ordered, place = group[ranked].sort(stable=True)
    rank = torch.arange(len(place), device=place.device) - torch.searchsorted(ordered, ordered)
    return ranked[place][rank < count]


def leads_of(canvas: Canvas, block: int | None) -> list[int | None]:
    """Return, for each row, the given positions of the block in which its masks begin; None where masks have gaps."""
    if block is None:
        return [None] * len(canvas)
    first = canvas.masked.byte().argmax(1)
    whole = canvas.masked.sum(1) == canvas.width - first
    leads = torch.where(whole, (first - canvas.pad) % block, -1)
    return [lead if lead >= 0 else None for lead in leads.tolist()]
