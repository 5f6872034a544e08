"""Order-Token Search (arXiv 2601.20339, Algorithm 1): beams over order and tokens, pruned by re-predicting blocks.

K beams are denoised alone by low-confidence remasking with tempered draws. At a search step every beam draws K full
completions from its one forward; each candidate's block is masked inside its completion and predicted again, and the
K candidates with the highest total live on. Numbers in comments are the lines of Algorithm 1 as printed, `end` lines
counted; all beams of all problems are rows of one batch, so its loops over beams (7, 23) and draws (9) are single
operations here. Line 1 is the fields; 6 and the `end` lines need no code. `draws`, `distinct`, `sure` and `answer` are
ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import torch

from unmask.core import Frame, Rows, Schedule, Scheduled, Step, decoder
from unmask.decoders.path import check_temperature
from unmask.errors import UnmaskError, check_at_least, check_between
from unmask.policies.likelihood import Block, Likelihood, likelihood, score_blocks
from unmask.policies.remasking import branch, redraw, sample, top
from unmask.registry import ADDED


@decoder("order-token-search", "ots")
@dataclass(frozen=True)
class OrderTokenSearch(Scheduled):
    beams: int = 4  # K: beams that survive a search, and completions that each draws
    block: int | None = None  # masks per block; 32, or all of them when there are fewer
    steps: int | None = None  # total steps; half the masks, or all of them for block 1
    temperature: float = 0.4  # temperature of the draws; 0 takes the likeliest token
    interval: int | None = None  # N: search every N steps, and at the last step of each block that has at least N
    likelihood: Likelihood = field(default_factory=Block)  # what is hidden and predicted again to score a candidate
    samples: int = 1  # M: completions over which a candidate's score is averaged
    sure: float | None = None  # approximate: also write draws of at least this probability
    draws: int | None = field(default=None, metadata={ADDED: True})  # completions of each beam; by default K
    distinct: bool = field(default=False, metadata={ADDED: True})  # keep only one of equal candidates
    answer: Literal["score", "majority"] = field(default="score", metadata={ADDED: True})  # how a beam is chosen

    commits_only = ends_together = True

    def __post_init__(self) -> None:
        likelihood.coerce(self, "likelihood")
        check_temperature(self.temperature)
        check_at_least(1, beams=self.beams, samples=self.samples, interval=self.interval, draws=self.draws)
        check_between(0, 1, sure=self.sure)
        if self.sure is not None and self.interval is not None:
            raise UnmaskError("sure and interval exclude each other: sure skips steps that interval counts")

    def __call__(self, rows: Rows) -> Iterator[Frame]:
        schedule = rows.plan(self.block, self.steps)
        rows = rows.fork(self.beams, step=0)  # 2: K identical beams,
        rows = rows.with_scores(rows.canvas.logp.new_zeros(len(rows), schedule.blocks))  # s[0:b-1] = 0
        for step in schedule:  # 3
            rows = rows.enter(step.span)  # 8: the block of the step
            if self._searches(step, schedule):  # 5; also at the end of a block, so that none stays unscored
                rows, frame = self._search(rows, step)
                yield frame
            elif self.sure is None:  # 22
                draft = sample(rows, rows.open(step.span, step.open), step.number, self.temperature)  # 4, 23-25
                rows = draft.write(top(draft.logp, draft.masked, step.quota))  # 26: transfer_tokens
                yield rows.frame(step.number)
            elif len(waiting := self._unready(rows, step, schedule)):
                rows = rows.put(waiting, self._write_sure(rows.only(waiting), step, schedule, self.sure))
                yield rows.frame(step.number)
        # 30: `choice` returns the row with the highest score

    def _search(self, rows: Rows, step: Step) -> tuple[Rows, Frame]:
        """Branch into K² candidates per problem, score them and keep the best K."""
        at = torch.cat([rows.open(step.span, step.open), rows.slots[:, rows.beyond(step.span)]], dim=1)
        changing = slice(self.likelihood.start(step.span), None)  # slots that scoring will hide or fill
        count = self.draws or self.beams
        drafts = branch(rows, at, changing, step.number, self.temperature, count)  # 4, 7, 9-11: x_0
        in_block = drafts.masked.index_fill(1, torch.arange(step.open, at.shape[1], device=at.device), False)
        candidates = drafts.write(top(drafts.logp, in_block, step.quota))  # 12: x_candidate
        completions = [drafts.complete(candidates)]  # 13: x_full_seq
        if self.samples > 1:
            completions += [again.complete(candidates) for again in redraw(drafts, self.temperature, self.samples - 1)]
        scores = score_blocks(candidates, completions, self.likelihood, step)  # 14-16: x_masked, s[block_idx]
        candidates = candidates.with_scores(scores)  # 17, 18: the score of a row is their sum; later blocks have 0
        parent, draw = rows.children(count)
        best = candidates.best(self.beams, candidates.distinct()[1] if self.distinct else None)  # 21: top_K
        return candidates.prune(best, step.number, parent, draw, completions[0].canvas.tokens)

    def _unready(self, rows: Rows, step: Step, schedule: Schedule) -> torch.Tensor:
        """Return rows with more masks in the block than its search will write."""
        masks = rows.masked(rows.slots[:, step.span]).sum(1)
        return (masks > schedule.quotas[step.block][-1]).nonzero()[:, 0]

    def _write_sure(self, rows: Rows, step: Step, schedule: Schedule, sure: float) -> Rows:
        """Write all draws that are sure, at least the quota, and leave the search its share."""
        draft = sample(rows, rows.open(step.span, step.open), step.number, self.temperature)
        count = (draft.masked & (draft.logp.exp() >= sure)).sum(1, keepdim=True).clamp(min=step.quota)
        most = draft.masked.sum(1, keepdim=True) - schedule.quotas[step.block][-1]
        return draft.write(top(draft.logp, draft.masked, torch.minimum(count, most)))

    @property
    def choice(self) -> str:
        return self.answer

    def max_forward_passes(self, length: int) -> int:
        schedule = Schedule.plan(length, self.block, self.steps)
        forwards = sum(self.likelihood.forward_passes(step.span) for step in schedule if self._searches(step, schedule))
        return schedule.steps * self.beams + forwards * self.samples * self.beams * (self.draws or self.beams)

    def _searches(self, step: Step, schedule: Schedule) -> bool:
        """Return whether a step searches. An interval longer than a block's steps skips some blocks."""
        due = self.interval is not None and step.number % self.interval == 0
        sparse = self.interval is not None and self.interval > len(schedule.quotas[step.block])
        return due or (step.last and (not sparse or step.number == schedule.steps))
