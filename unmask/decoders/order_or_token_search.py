"""Order search and token search (arXiv 2601.20339, Appendix): one write per step, K² candidates, K of them kept.

Both rank partial texts and start from one row: K identical ones would remain identical.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from unmask.core import Beliefs, Frame, Rows, Schedule, Scheduled, Step, decoder
from unmask.core.shapes import AtBool, AtFloat, Bool, Float, Int, PerRow
from unmask.errors import check_at_least, check_known
from unmask.policies.likelihood import Likelihood, likelihood, predict_slots
from unmask.registry import ADDED


class Proposals(NamedTuple):
    """The writes that each row tries: up to K, best first."""

    place: Int[Tensor, "row draw"]  # among the asked columns
    token: Int[Tensor, "row draw"]
    logp: Float[Tensor, "row draw"]
    valid: Bool[Tensor, "row draw"]  # False where a row has fewer


class Candidates(NamedTuple):
    """The candidates of a step, ordered by problem, then parent, then draw."""

    rows: Rows
    parent: PerRow
    draw: PerRow
    copy: PerRow  # its number among the distinct texts
    distinct: Int[Tensor, " alone"]  # the first candidate of every distinct text


@dataclass(frozen=True)
class VisibleSearch(Scheduled):
    """The base of searches that rank partial texts; a subclass says in `propose` which writes a row tries."""

    beams: int = 3  # K: rows that live on, and writes each proposes
    block: int | None = None  # masks per block; 32, or all of them when there are fewer
    score: Literal["visible", "path"] = "visible"  # log p of what is written: in a pass over it, or when it was written
    likelihood: Likelihood | None = field(default=None, metadata={ADDED: True})  # score what is written by it instead

    commits_only = ends_together = True

    def __post_init__(self) -> None:
        likelihood.coerce(self, "likelihood")
        check_at_least(1, beams=self.beams)
        check_known(("visible", "path"), score=self.score)

    @abstractmethod
    def propose(self, beliefs: Beliefs, masked: AtBool) -> Proposals:
        """Return writes of each row among its asked columns that are masked and in the block."""

    def __call__(self, rows: Rows) -> Iterator[Frame]:
        schedule = rows.plan(self.block, steps=rows.length)
        steps = list(schedule)
        rows = rows.enter(slice(0, rows.length) if self._looks_ahead else steps[0].span)
        beliefs = self._ask(rows, steps[0])
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            candidates = self._branch(beliefs, rows, step)
            ahead = self._look(candidates, following or step)
            scored = candidates.rows.with_scores(self._scores(ahead, candidates, schedule))
            best = scored.best(self.beams, candidates.copy)
            text = scored.canvas.tokens
            rows, frame = scored.prune(best, step.number, candidates.parent, candidates.draw, text)
            yield frame
            if ahead is not None:
                beliefs = ahead.rows(best)
            elif following is not None:
                rows = rows.enter(following.span)
                beliefs = self._ask(rows, following)

    def max_forward_passes(self, length: int) -> int:
        k = self.beams
        asking = 1 + k + k**2 * (length - 1) if self._looks_ahead else 1 + k * (length - 1)
        forwards = 0 if self.likelihood is None else self.likelihood.forward_passes(slice(0, length))
        return asking + forwards * (k + k**2 * (length - 1))

    @property
    def _looks_ahead(self) -> bool:
        """True if the model sees candidates before they are pruned; a single one has no rival."""
        return self.score == "visible" and self.beams > 1 and self.likelihood is None

    def _asked(self, step: Step) -> slice:
        """Return the asked slots. Looking ahead reads all that was written so far, and serves the next step as well."""
        return slice(0, step.span.stop) if self._looks_ahead else step.span

    def _ask(self, rows: Rows, step: Step) -> Beliefs:
        return rows.ask(rows.slots[:, self._asked(step)])

    def _look(self, candidates: Candidates, step: Step) -> Beliefs | None:
        """Return the beliefs about every candidate; equal ones are asked about once."""
        if not self._looks_ahead:
            return None
        rows = candidates.rows.keep(candidates.distinct)
        return self._ask(rows, step).rows(candidates.copy)

    def _branch(self, beliefs: Beliefs, rows: Rows, step: Step) -> Candidates:
        asked = rows.slots[:, self._asked(step)]
        masked = rows.masked(asked)
        masked[:, : asked.shape[1] - (step.span.stop - step.span.start)] = False
        proposals = self.propose(beliefs, masked)
        parent, draw = proposals.valid.nonzero().unbind(1)
        at = asked[parent].gather(1, proposals.place[parent, draw, None])
        token, logp = proposals.token[parent, draw, None], proposals.logp[parent, draw, None]
        grown = rows.keep(parent).write(at, token, torch.ones_like(at, dtype=torch.bool), step.number, logp)
        first, copy = grown.distinct()
        return Candidates(grown, parent, draw, copy, first)

    def _scores(self, ahead: Beliefs | None, candidates: Candidates, schedule: Schedule) -> Float[Tensor, "row block"]:
        """Return log p of what is written, by block."""
        rows = candidates.rows
        if self.likelihood is not None:
            logp = predict_slots(rows.keep(candidates.distinct), self.likelihood)[candidates.copy]
            return _by_block(logp.masked_fill(rows.masked(rows.slots), 0.0), schedule)
        if ahead is None:
            return _by_block(rows.canvas.logp.gather(1, rows.slots), schedule)
        asked = rows.slots[:, : ahead.shape[1]]
        logp = ahead.logp(rows.canvas.at(asked)).masked_fill(rows.masked(asked), 0.0)
        return _by_block(logp, schedule)


@decoder("order-search")
class OrderSearch(VisibleSearch):
    """Order search (arXiv 2601.20339, Appendix): each row tries its K surest positions with their likeliest tokens."""

    def propose(self, beliefs: Beliefs, masked: AtBool) -> Proposals:
        token, logp = beliefs.best
        ranked = logp.masked_fill(~masked, -torch.inf).sort(dim=1, descending=True, stable=True)
        place = ranked.indices[:, : self.beams]
        return Proposals(place, token.gather(1, place), logp.gather(1, place), masked.gather(1, place))


@decoder("token-search")
class TokenSearch(VisibleSearch):
    """Token search (arXiv 2601.20339, Appendix): each row tries the K likeliest tokens of its surest position."""

    def propose(self, beliefs: Beliefs, masked: AtBool) -> Proposals:
        _, surest = beliefs.best
        place = surest.masked_fill(~masked, -torch.inf).argmax(1)
        token, logp = beliefs.at(place).top(self.beams)
        token, logp = token[:, 0], logp[:, 0]  # (row, draw)
        return Proposals(place[:, None].expand_as(token), token, logp, logp > -torch.inf)


def _by_block(logp: AtFloat, schedule: Schedule) -> Float[Tensor, "row block"]:
    short = schedule.blocks * schedule.block - logp.shape[1] - schedule.lead
    return torch.nn.functional.pad(logp, (schedule.lead, short)).unflatten(1, (-1, schedule.block)).sum(2)
