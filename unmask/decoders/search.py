"""Best-first search over second choices. This is ours, not the paper's.

A greedy adaptive path writes a first text. At every slot it had a second choice, less likely by some factor. A
deviation takes the second choice at one slot of a finished text and writes again everything that the text wrote from
that step on. The likeliest deviations come first, wherever they start. Every text is scored by hiding its parts and
predicting them again. The answer is the text of highest score.

A problem ends when no plausible second choice is left, when a text is predicted again with certainty, or when its
forward passes are spent. Nothing is drawn at random: the seed does not matter.

With a check, a problem ends when a text passes. Until then every choice may be tried, the likeliest five after the
first at each slot, those inside the part of a text that is wrong a little earlier. No forward passes are spent on
scores: what the check says orders the texts, and log p along their paths orders those of which it says the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import log
from time import perf_counter

import torch
from torch import Tensor

from unmask.core import Decoder, Frame, Rows, Schedule, decoder
from unmask.core.rows import Verdicts, first_of_each
from unmask.core.shapes import AtBool, Columns, Float, Int, PerRow, Score
from unmask.decoders.adaptive import advance_by_row
from unmask.errors import UnmaskError, check_above, check_at_least, check_between
from unmask.policies.likelihood import Likelihood, Sum, likelihood, predict_slots
from unmask.policies.remasking import Draft, top

CHOICES = 5  # choices after the first that are tried at a slot where a check can tell the right one, instead of one
WRONG = 1.0  # added to the log odds of choices inside the part of a text that is wrong
HURRY = 1.25  # a step writes at least masks / passes_left ** HURRY: few at first, more when the budget runs out


class Budget:
    """The forward passes that are left for each problem, and an optional deadline for the whole batch."""

    def __init__(self, passes: int, seconds: float | None, problems: Int[torch.Tensor, " problem"]):
        self.left = torch.full_like(problems, passes)
        self._now = perf_counter()
        self._deadline = None if seconds is None else self._now + seconds
        self._longest_step = 0.0

    def spend(self, problem: PerRow, passes: int = 1) -> None:
        self.left.index_add_(0, problem, torch.full_like(problem, -passes))

    def stop(self, problem: PerRow) -> None:
        self.left[problem] = 0

    def end_step(self) -> None:
        before, self._now = self._now, perf_counter()
        self._longest_step = max(self._longest_step, self._now - before)

    @property
    def late(self) -> bool:
        """True when two more steps as long as the longest so far would pass the deadline."""
        return self._deadline is not None and self._now + 2 * self._longest_step > self._deadline


@dataclass(frozen=True)
class Hypotheses:
    """Rows that are searched, with the second choice of every slot when it was written."""

    rows: Rows
    problem: PerRow  # the problem that each row belongs to
    others: Int[Tensor, "row at choice"]  # the most likely tokens after the first
    odds: Float[Tensor, "row at choice"]  # their log p minus that of the first; -inf where it is not to be taken
    prior: Score  # sum of the odds of the choices that led to this row
    verdicts: Verdicts  # what a check says of this row; of unchecked rows that they fail, and nothing about where

    @classmethod
    def blank(cls, rows: Rows, problem: PerRow, prior: Score) -> Hypotheses:
        others = torch.zeros_like(rows.slots)[:, :, None].repeat(1, 1, CHOICES if rows.judge else 1)
        odds = torch.full_like(others, -torch.inf, dtype=prior.dtype)
        return cls(rows, problem, others, odds, prior, replace(rows, judge=None).check())

    @property
    def step(self) -> Int[Tensor, "row at"]:
        """The number of the step that wrote each slot."""
        return self.rows.canvas.order.gather(1, self.rows.slots)

    @property
    def last(self) -> int:
        return int(self.step.max())

    def frame(self, more: Hypotheses) -> Frame:
        """Return a frame of these rows and of others that are being written."""
        score = torch.cat([self.rows.score, more.rows.score])
        return replace(self.rows.joined(more.rows).frame(max(self.last, more.last)), score=score)

    def joined(self, more: Hypotheses) -> Hypotheses:
        names = ("problem", "others", "odds", "prior")
        tensors = {name: torch.cat([getattr(self, name), getattr(more, name)]) for name in names}
        verdicts = Verdicts(*map(torch.cat, zip(self.verdicts, more.verdicts, strict=True)))
        return Hypotheses(self.rows.joined(more.rows), **tensors, verdicts=verdicts)

    def deviate(self, text: PerRow, slot: PerRow, choice: PerRow) -> tuple[Hypotheses, Hypotheses]:
        """Return the rows without these choices, and new rows that begin with them."""
        rows, odds = replace(self.rows.keep(text).leave(), scores=None), self.odds[text, slot, choice]
        column, step = rows.slots.gather(1, slot[:, None]), self.step[text]
        began = step.gather(1, slot[:, None])
        logp = rows.canvas.logp.gather(1, column) + odds[:, None]
        rows = rows.remask(torch.where(step >= began, rows.slots, column))
        token = self.others[text, slot, choice][:, None]
        rows = rows.write(column, token, torch.ones_like(token, dtype=torch.bool), began[:, 0], logp)
        fresh = Hypotheses.blank(rows, self.problem[text], self.prior[text] + odds)
        return replace(self, odds=self.odds.index_put((text, slot, choice), odds.new_tensor(-torch.inf))), fresh


@decoder("search")
@dataclass(frozen=True)
class BestFirstSearch(Decoder):
    budget: int | None = None  # forward passes per problem, never exceeded; by default those of ots with 4 beams
    seconds: float | None = None  # time limit for the whole batch
    width: int = 4  # texts of a problem that are written at the same time, and final rows
    sure: float = 0.99  # write what is at least this likely; a text predicted again with this probability is certain
    plausible: float = 0.1  # least probability of a second choice, relative to the first
    block: int | None = None  # masks per block; 64, or all of them when there are fewer
    likelihood: Likelihood = field(default_factory=Sum)  # what scores the texts

    announces_ends = True

    def __post_init__(self) -> None:
        likelihood.coerce(self, "likelihood")
        check_between(0, 1, sure=self.sure, plausible=self.plausible)
        check_at_least(1, budget=self.budget, width=self.width, block=self.block)
        check_above(0, seconds=self.seconds, plausible=self.plausible)

    def __call__(self, rows: Rows) -> Iterator[Frame]:
        passes, block = self._sizes(rows.length)
        self._check_blocks(passes, rows.plan(block))
        budget, problem = Budget(passes, self.seconds, rows.group), rows.children(1)[0]
        found = blank = Hypotheses.blank(rows, problem, rows.canvas.logp.new_zeros(len(rows)))
        for found in self._write(blank, budget.left, budget):
            yield found.rows.frame(found.last)
        found, searched = self._evaluate_first(found, budget), problem
        while len(chosen := self._choose(found, budget)) and not budget.late:
            ended, searched = self._ended(found, chosen, searched)
            found, started = found.deviate(*chosen.unbind(1))
            parent, fresh = torch.cat([found.rows.children(1)[0], chosen[:, 0]]), started
            yield replace(found.frame(fresh), parent=parent, ended=ended)
            for fresh in self._write(started, self._shares(started, budget), budget):
                yield found.frame(fresh)
                if budget.late:
                    break
            if not budget.late:
                found = found.joined(self._evaluate(fresh, budget))
        best = self._best(found)
        yield replace(found.rows.keep(best).frame(found.last), parent=best)

    def _best(self, found: Hypotheses) -> Int[Tensor, " best"]:
        """Return the final rows of every problem: the best distinct texts."""
        return found.rows.best(self.width, found.rows.distinct()[1], found.verdicts.score)

    def _ended(
        self, found: Hypotheses, chosen: Int[Tensor, "some three"], before: Int[Tensor, " before"]
    ) -> tuple[Frame | None, Int[Tensor, " searched"]]:
        """Return the final rows of problems that were searched before and are not now, and the problems that are."""
        searched = found.problem[chosen[:, 0]].unique()
        if len(searched) == len(before):
            return None, searched
        best = self._best(found)
        best = best[torch.isin(found.problem[best], before) & ~torch.isin(found.problem[best], searched)]
        return found.rows.frame(found.last).rows(best), searched

    def _write(self, texts: Hypotheses, allowed: PerRow, budget: Budget) -> Iterator[Hypotheses]:
        """Fill all masks by greedy adaptive paths, each within its allowed forward passes.

        Once the batch is late, each block is filled in one step.
        """
        size, allowed = texts.rows.plan(self._sizes(texts.rows.length)[1]).block, allowed.clone()
        others, odds = texts.others.clone(), texts.odds.clone()

        def write(index: PerRow, rows: Rows, at: Columns, step: PerRow) -> Rows:
            budget.spend(texts.problem[index])
            beliefs = rows.ask(at)
            token, logp = beliefs.top(1 + others.shape[2])
            draft = Draft(rows, at, token[:, :, 0], logp[:, :, 0], beliefs, step)
            where = self._written(draft, torch.ones_like(index) if budget.late else allowed[index])
            row, place = where.nonzero().unbind(1)
            slot = index[row], torch.searchsorted(rows.slots, at)[row, place]
            others[slot] = token[row, place, 1:]
            odds[slot] = (logp[row, place, 1:] - logp[row, place, :1]).to(odds.dtype)
            return draft.write(where)

        start, _ = texts.rows.advance(size)  # all together: a deviation may have nothing to write
        for rows, _ in advance_by_row(start, texts.step.amax(1), size, write):
            allowed -= 1
            budget.end_step()
            yield replace(texts, rows=rows, others=others.clone(), odds=odds.clone())

    def _written(self, draft: Draft, allowed: PerRow) -> AtBool:
        """Return what a step writes: what is sure, the surest, and enough for the blocks that follow to be reached."""
        masked = draft.fillable
        in_block, size = masked.sum(1), draft.at.shape[1]
        in_all = draft.rows.masked(draft.rows.slots).sum(1)
        blocks_after = -(-(in_all - in_block) // size)
        least = (in_all / allowed.clamp(min=1).double() ** HURRY).ceil().long()
        quota = torch.where(allowed <= 1 + blocks_after, in_block, least)
        count = torch.maximum((masked & (draft.logp.exp() >= self.sure)).sum(1), quota).clamp(min=1)
        return top(draft.logp, masked, count[:, None])

    def _choose(self, found: Hypotheses, budget: Budget) -> Int[Tensor, "some three"]:
        """Return the likeliest deviations of every problem, each a row, a slot and a choice, within its budget."""
        value, cost = found.prior[:, None, None] + found.odds, self._cost(found)
        left = budget.left[found.problem]
        likely = value > -torch.inf if found.rows.judge else value >= log(self.plausible)
        row, slot, choice = (likely & (cost <= left[:, None])[:, :, None]).nonzero().unbind(1)
        value = value + WRONG * found.verdicts.wrong[:, :, None]
        ranked = value[row, slot, choice].sort(descending=True, stable=True).indices
        chosen = first_of_each(found.problem[row], ranked, self.width)  # ordered by problem, best first
        row, slot, choice = row[chosen], slot[chosen], choice[chosen]
        total, problem = cost[row, slot].cumsum(0), found.problem[row]
        start = torch.searchsorted(problem, problem)  # the first deviation of the same problem
        of_problem = total - total[start] + cost[row, slot][start]
        affordable = of_problem <= left[row]
        return torch.stack([row[affordable], slot[affordable], choice[affordable]], dim=1)

    def _cost(self, found: Hypotheses) -> Int[Tensor, "row at"]:
        """Estimate the forward passes of each deviation: the steps its text took from there on, and its score."""
        return found.step.amax(1, keepdim=True) - found.step + 1 + self._scoring(found)

    def _shares(self, fresh: Hypotheses, budget: Budget) -> PerRow:
        """Return the forward passes that each new text may take before it is scored."""
        count = torch.zeros_like(budget.left).index_add(0, fresh.problem, torch.ones_like(fresh.problem))
        return (budget.left // count.clamp(min=1))[fresh.problem] - self._scoring(fresh)

    def _evaluate_first(self, found: Hypotheses, budget: Budget) -> Hypotheses:
        """Evaluate the first text where the budget allows a second one; elsewhere it is the answer as it is."""
        if found.rows.judge:
            return self._evaluate(found, budget)
        searched = budget.left > 2 * self._scoring(found)
        budget.stop((~searched).nonzero()[:, 0])
        some, score = searched.nonzero()[:, 0], found.rows.score
        if len(some) and not budget.late:
            score = score.index_copy(0, some, self._predicted(found.rows.keep(some), found.problem[some], budget))
        return replace(found, rows=found.rows.leave().with_scores(score[:, None]))

    def _evaluate(self, texts: Hypotheses, budget: Budget) -> Hypotheses:
        """Check texts, or score them where there is no check. One that passes or is certain ends its problem."""
        verdicts, score = texts.rows.check(), texts.rows.score
        if texts.rows.judge:
            budget.stop(texts.problem[verdicts.passed])
        else:
            score = self._predicted(texts.rows, texts.problem, budget)
        return replace(texts, rows=texts.rows.leave().with_scores(score[:, None]), verdicts=verdicts)

    def _predicted(self, rows: Rows, problem: PerRow, budget: Budget) -> Score:
        """Return the scores of texts that are predicted again."""
        budget.spend(problem, self.likelihood.forward_passes(slice(0, rows.length)))
        score = predict_slots(rows, self.likelihood).sum(1)
        budget.stop(problem[score.exp() >= self.sure])
        return score

    def _scoring(self, texts: Hypotheses) -> int:
        """Return the forward passes that the score of one text takes; a check takes none."""
        return 0 if texts.rows.judge else self.likelihood.forward_passes(slice(0, texts.rows.length))

    def _sizes(self, length: int) -> tuple[int, int]:
        """Return budget and block for `length` masks. The default block leaves every block a forward pass."""
        schedule = Schedule.plan(length)
        budget = 4 * schedule.steps + 16 * schedule.blocks if self.budget is None else self.budget
        return budget, min(max(64, -(-length // budget)), length) if self.block is None else self.block

    def resolved(self, length: int) -> BestFirstSearch:
        budget, block = self._sizes(length)
        self._check_blocks(budget, Schedule.plan(length, block))
        return replace(self, budget=budget, block=block)

    def _check_blocks(self, budget: int, schedule: Schedule) -> None:
        if budget < schedule.blocks:
            raise UnmaskError(
                f"budget must be at least {schedule.blocks} for {schedule.length} masks in blocks of {schedule.block}, "
                f"got {budget}: raise it or use a larger block"
            )

    def max_forward_passes(self, length: int) -> int:
        return self._sizes(length)[0]
