"""What a search may still spend: rows of each problem, and seconds of the whole batch. Texts being searched, with the second choice that each position had when it was written. Best-first search over second choices. This is ours, not the paper's.

A greedy adaptive path writes a first text. At every slot it had a second choice, less likely by some factor. A
deviation takes the second choice at one slot of a finished text, and writes again all that the text wrote from that
step on. The likeliest deviations come first, wherever they start. Every text is scored by hiding its parts and
predicting them again. The answer is the text of highest score.

A problem ends when no plausible second choice is left, when a text is predicted again with certainty, or when its
rows are spent. Nothing is drawn at random: the seed does not matter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import log
from time import perf_counter

import torch
from torch import Tensor

from unmask.core import Decoder, Frame, Rows, Schedule, decoder
from unmask.core.rows import first_of_each
from unmask.core.shapes import AtBool, AtFloat, AtTokens, Bool, Int, PerRow, Score
from unmask.errors import UnmaskError, check_above, check_at_least, check_between
from unmask.policies.draft import Draft, top
from unmask.policies.likelihood import Likelihood, Sum, likelihood, predict_slots


class Limit:
    """Counts as it is told."""

    def __init__(self, rows: int, seconds: float | None, problems: Int[torch.Tensor, " problem"]):
        self.left = torch.full_like(problems, rows)  # rows, by problem
        self._now = perf_counter()
        self._end = None if seconds is None else self._now + seconds
        self._longest = 0.0  # step

    def spend(self, problem: PerRow, rows: int = 1) -> None:
        self.left.index_add_(0, problem, torch.full_like(problem, -rows))

    def stop(self, problem: PerRow) -> None:
        self.left[problem] = 0

    def tick(self) -> None:
        """A step is over."""
        before, self._now = self._now, perf_counter()
        self._longest = max(self._longest, self._now - before)

    @property
    def late(self) -> bool:
        """Whether two more steps as long as the longest so far would pass the end."""
        return self._end is not None and self._now + 2 * self._longest > self._end


@dataclass(frozen=True)
class Texts:
    """Rows and the second choices they had. `at` is every slot."""

    rows: Rows
    problem: PerRow  # which of the first rows each belongs to
    second: AtTokens
    odds: AtFloat  # log p of the second choice minus that of the first; -inf where it must not be taken (again)
    prior: Score  # the sum of the odds that were accepted on the way to this text

    @classmethod
    def blank(cls, rows: Rows, problem: PerRow, prior: Score) -> Texts:
        odds = rows.canvas.logp.new_full(rows.slots.shape, -torch.inf)
        return cls(rows, problem, torch.zeros_like(rows.slots), odds, prior)

    @property
    def step(self) -> Int[Tensor, "row at"]:
        """The step that wrote each slot."""
        return self.rows.canvas.order.gather(1, self.rows.slots)

    @property
    def last(self) -> int:
        return int(self.step.max())

    def frame(self, more: Texts) -> Frame:
        """These and others that are being written."""
        score = torch.cat([self.rows.score, more.rows.score])
        return replace(self.rows.joined(more.rows).frame(max(self.last, more.last)), score=score)

    def joined(self, more: Texts) -> Texts:
        names = ("problem", "second", "odds", "prior")
        return Texts(self.rows.joined(more.rows), *(torch.cat([getattr(self, n), getattr(more, n)]) for n in names))

    def deviate(self, text: PerRow, slot: PerRow) -> tuple[Texts, Texts]:
        """The texts with these second choices struck out, and new ones that begin with them."""
        rows, odds = replace(self.rows.keep(text), scores=None, cache=None), self.odds[text, slot]
        column, step = rows.slots.gather(1, slot[:, None]), self.step[text]
        began = step.gather(1, slot[:, None])
        logp = rows.canvas.logp.gather(1, column) + odds[:, None]
        rows = rows.remask(torch.where(step >= began, rows.slots, column))
        token = self.second[text, slot][:, None]
        rows = rows.write(column, token, torch.ones_like(token, dtype=torch.bool), began[:, 0], logp)
        fresh = Texts.blank(rows, self.problem[text], self.prior[text] + odds)
        return replace(self, odds=self.odds.index_put((text, slot), odds.new_tensor(-torch.inf))), fresh


HURRY = 1.25  # a step writes at least masks / rows left ** HURRY: few at first, more when rows run out


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
        budget, block = self._sizes(rows.length)
        self._check_blocks(budget, rows.plan(block))
        limit, forwards = Limit(budget, self.seconds, rows.group), self._forwards(rows.length)
        problem, _ = rows.children(1)
        texts = blank = Texts.blank(rows, problem, rows.canvas.logp.new_zeros(len(rows)))
        for texts in self._write(blank, limit.left, limit):
            yield texts.rows.frame(texts.last)
        texts, going = self._score_first(texts, limit), problem
        while len(chosen := self._choose(texts, limit)) and not limit.late:
            ended, going = self._ended(texts, chosen, going)
            texts, begun = texts.deviate(*chosen.unbind(1))
            before, _ = texts.rows.children(1)
            yield replace(texts.frame(begun), parent=torch.cat([before, chosen[:, 0]]), ended=ended)
            fresh = begun
            for fresh in self._write(begun, self._shares(begun.problem, forwards, limit), limit):
                yield texts.frame(fresh)
                if limit.late:
                    break
            if not limit.late:
                texts = texts.joined(self._score(fresh, limit))
        best = self._best(texts)
        yield replace(texts.rows.keep(best).frame(texts.last), parent=best)

    def _best(self, texts: Texts) -> Int[Tensor, " best"]:
        """The final rows of every problem."""
        return texts.rows.best(self.width, texts.rows.copies())

    def _ended(
        self, texts: Texts, chosen: Int[Tensor, "some two"], before: Int[Tensor, " before"]
    ) -> tuple[Frame | None, Int[Tensor, " going"]]:
        """The final rows of problems that went on before and do not now, and the problems that do."""
        going = texts.problem[chosen[:, 0]].unique()
        if len(going) == len(before):
            return None, going
        best = self._best(texts)
        best = best[torch.isin(texts.problem[best], before) & ~torch.isin(texts.problem[best], going)]
        return texts.rows.frame(texts.last).rows(best), going

    def _write(self, texts: Texts, allowed: PerRow, limit: Limit) -> Iterator[Texts]:
        """Greedy adaptive paths, each of which ends within its allowed rows. Those of a late batch end at once."""
        _, block = self._sizes(texts.rows.length)
        size, allowed, step = texts.rows.plan(block).block, allowed.clone(), texts.step.amax(1)
        texts = replace(texts, rows=texts.rows.advance(size)[0])  # all together: a deviation may have nothing to write
        while len(index := texts.rows.unfinished):
            limit.spend(texts.problem[index])
            step = step.index_add(0, index, torch.ones_like(index))
            some, at = texts.rows.only(index).advance(size)
            beliefs = some.ask(at)
            token, logp = beliefs.top(2)
            draft = Draft(some, at, token[:, :, 0], logp[:, :, 0], beliefs, step[index])
            where = self._written(draft, torch.ones_like(index) if limit.late else allowed[index])
            row, place = where.nonzero().unbind(1)
            slot = index[row], torch.searchsorted(some.slots, at)[row, place]
            odds = (logp[row, place, 1] - logp[row, place, 0]).to(texts.odds.dtype)
            texts = replace(
                texts,
                rows=texts.rows.put(index, draft.write(where)),
                second=texts.second.index_put(slot, token[row, place, 1]),
                odds=texts.odds.index_put(slot, odds),
            )
            allowed -= 1
            limit.tick()
            yield texts

    def _written(self, draft: Draft, allowed: PerRow) -> AtBool:
        """What is sure, the surest, and enough to end in time: every block needs a row."""
        masked = draft.masked
        masked[:, 1:] &= draft.at[:, 1:] != draft.at[:, :-1]  # a short block repeats its last column
        here, size = masked.sum(1), draft.at.shape[1]
        every = draft.rows.masked(draft.rows.slots).sum(1)
        later = -(-(every - here) // size)  # blocks
        few = (every / allowed.clamp(min=1).double() ** HURRY).ceil().long()
        quota = torch.where(allowed <= 1 + later, here, few)
        count = torch.maximum((masked & (draft.logp.exp() >= self.sure)).sum(1), quota).clamp(min=1)
        return top(draft.logp, masked, count[:, None])

    def _choose(self, texts: Texts, limit: Limit) -> Int[Tensor, "some two"]:
        """The likeliest deviations of every problem that goes on, each a text and a slot, as far as rows last."""
        value, cost = texts.prior[:, None] + texts.odds, self._cost(texts)
        going = limit.left.masked_fill(self._certain(texts, len(limit.left)), 0)[texts.problem]
        text, slot = ((value >= log(self.plausible)) & (cost <= going[:, None])).nonzero().unbind(1)
        ranked = value[text, slot].sort(descending=True, stable=True).indices
        chosen = first_of_each(texts.problem[text], ranked, self.width)
        text, slot = text[chosen], slot[chosen]
        total = cost[text, slot].cumsum(0)
        start = torch.searchsorted(texts.problem[text], texts.problem[text])
        before = total[start] - cost[text, slot][start]  # of other problems
        within = total - before <= going[text]
        return torch.stack([text[within], slot[within]], dim=1)

    def _certain(self, texts: Texts, problems: int) -> Bool[Tensor, " problem"]:
        """Whether a text of each problem is."""
        best = texts.rows.score.new_full((problems,), -torch.inf)
        best = best.scatter_reduce(0, texts.problem, texts.rows.score, "amax")
        return best.exp() >= self.sure

    def _cost(self, texts: Texts) -> Int[Tensor, "row at"]:
        """Rows to reckon with for a deviation: as many steps as its text took from there on, and its score."""
        return texts.step.amax(1, keepdim=True) - texts.step + 1 + self._forwards(texts.rows.length)

    def _shares(self, problem: PerRow, forwards: int, limit: Limit) -> PerRow:
        """Rows that each new text may take before it is scored."""
        count = torch.zeros_like(limit.left).index_add(0, problem, torch.ones_like(problem))
        return (limit.left // count.clamp(min=1))[problem] - forwards

    def _score_first(self, texts: Texts, limit: Limit) -> Texts:
        """A first text is scored where rows are left for a second one; where not, it is the answer as it is."""
        forwards, score = self._forwards(texts.rows.length), texts.rows.score
        going = limit.left > 2 * forwards
        limit.stop((~going).nonzero()[:, 0])
        some = going.nonzero()[:, 0]
        if len(some) and not limit.late:
            limit.spend(some, forwards)
            score = score.index_copy(0, some, predict_slots(texts.rows.keep(some), self.likelihood).sum(1))
        return replace(texts, rows=replace(texts.rows, cache=None).with_scores(score[:, None]))

    def _score(self, texts: Texts, limit: Limit) -> Texts:
        limit.spend(texts.problem, self._forwards(texts.rows.length))
        score = predict_slots(texts.rows, self.likelihood).sum(1, keepdim=True)
        return replace(texts, rows=replace(texts.rows, cache=None).with_scores(score))

    def _forwards(self, length: int) -> int:
        return self.likelihood.forwards(slice(0, length))

    def _sizes(self, length: int) -> tuple[int, int]:
        """Budget and block size for `length` masks. The default block gives every block at least one forward pass."""
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
