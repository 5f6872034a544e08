"""Searches that rank partial texts (arXiv 2601.20339, Appendix): one write a step, K² candidates, K of them kept.

Both cases start from one row: K identical ones would stay copies for ever. A case says which writes a row proposes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeVar

import torch
from torch import Tensor

from unmask.core import Beliefs, Branch, Canvas, Denoiser, Frame, Held, Noise, Schedule, Step, lasts
from unmask.core.cost import merge
from unmask.core.shapes import AtBool, AtFloat, Bool, Columns, Float, Int, Rows, Score
from unmask.errors import UnmaskError, nearest

Case = TypeVar("Case", bound="Frontier")


class Proposals(NamedTuple):
    """Up to K writes a row, best first."""

    place: Int[Tensor, "row draw"]  # among the asked columns
    token: Int[Tensor, "row draw"]
    logp: Float[Tensor, "row draw"]
    there: Bool[Tensor, "row draw"]  # False where a row has fewer


class Candidates(NamedTuple):
    """By problem, then parent, then draw."""

    canvas: Canvas
    holes: Columns
    parent: Rows
    draw: Rows
    copies: Rows  # equal for equal canvases: the place of each among the distinct ones
    distinct: Int[Tensor, " alone"]  # the first of every set of equal ones


@dataclass(frozen=True)
class Frontier(ABC):
    """Abstract: a case adds `propose`."""

    beams: int = 3  # K: rows that live on, and writes each proposes
    block: int | None = None  # masks a block; 32, or all of them when there are fewer
    score: Literal["visible", "path"] = "visible"  # log p of what is written: in a pass over it, or when it was written

    def __post_init__(self) -> None:
        if self.beams < 1:
            raise UnmaskError(f"beams={self.beams} does not work: choose 1 or more")
        if self.score not in ("visible", "path"):
            raise UnmaskError(f"unknown score {self.score!r}: {nearest(self.score, ('visible', 'path'))}")

    @abstractmethod
    def propose(self, beliefs: Beliefs, masked: AtBool) -> Proposals:
        """Writes of each row among its asked columns that are masked and in the block."""

    def __call__(self, denoiser: Denoiser, canvas: Canvas, noise: Noise) -> Iterator[Frame]:
        del noise
        holes = canvas.holes
        schedule = Schedule.plan(holes.shape[1], self.block, steps=holes.shape[1])
        steps = list(schedule)
        held = self._hold(denoiser, canvas, holes, steps[0])
        beliefs = held(canvas, holes[:, self._asked(steps[0])])
        for step, then in zip(steps, [*steps[1:], steps[-1]], strict=True):
            found = self._branch(beliefs, canvas, holes, step)
            seen = None
            if self._looks:
                asked = found.holes[found.distinct][:, self._asked(then)]
                grown = held.rows(found.parent[found.distinct])
                seen = grown(found.canvas.rows(found.distinct), asked).rows(found.copies)
            blocks = self._scores(seen, found, schedule)
            total = blocks.sum(1)
            best = _best(total, found, self.beams)
            kept = torch.zeros_like(found.draw, dtype=torch.bool).scatter(0, best, True)
            branch = Branch(found.canvas, found.canvas.tokens, found.parent, found.draw, total, blocks, kept)
            canvas, holes = replace(found.canvas.rows(best), source=found.parent[best]), found.holes[best]
            held = held.rows(found.parent[best])
            yield Frame(canvas, total[best], step.number, branch)
            if seen is not None:
                beliefs = seen.rows(best)
            elif step is not then:
                held = self._hold(denoiser, canvas, holes, then) if then.holds(lasts(denoiser)) else held
                beliefs = held(canvas, holes[:, self._asked(then)])

    @property
    def choice(self) -> str:
        return "score"

    def resolved(self: Case, length: int) -> Case:
        return replace(self, block=Schedule.plan(length, self.block, steps=length).block)

    def rows(self, length: int) -> int:
        """At most K² a step, once there are K rows; without looking ahead, K a step."""
        k = self.beams
        return 1 + k + k**2 * (length - 1) if self._looks else 1 + k * (length - 1)

    @property
    def _looks(self) -> bool:
        """Whether candidates are seen by the model before they are pruned: a single one has no rival."""
        return self.score == "visible" and self.beams > 1

    def _asked(self, step: Step) -> slice:
        """Looking ahead reads all that was written so far, and serves the next step as well."""
        return slice(0, step.holes.stop) if self._looks else step.holes

    def _hold(self, denoiser: Denoiser, canvas: Canvas, holes: Columns, step: Step) -> Held:
        """Looking ahead reads earlier blocks again, each time in the light of later ones: only the prompt stays."""
        fresh = holes if self._looks else holes[:, step.holes]
        return Held.of(denoiser, canvas, fresh)

    def _branch(self, beliefs: Beliefs, canvas: Canvas, holes: Columns, step: Step) -> Candidates:
        asked = holes[:, self._asked(step)]
        masked = canvas.masked_at(asked)
        masked[:, : asked.shape[1] - (step.holes.stop - step.holes.start)] = False
        made = self.propose(beliefs, masked)
        parent, draw = made.there.nonzero().unbind(1)
        at = asked[parent].gather(1, made.place[parent, draw, None])
        token, logp = made.token[parent, draw, None], made.logp[parent, draw, None]
        grown = canvas.rows(parent).write(at, token, torch.ones_like(at, dtype=torch.bool), step.number, logp)
        distinct, copies = merge(grown, at[:, :0])
        return Candidates(grown, holes[parent], parent, draw, copies, distinct)

    def _scores(self, seen: Beliefs | None, found: Candidates, schedule: Schedule) -> Float[Tensor, "row block"]:
        """log p of what is written, by block."""
        if seen is None:
            return _by_block(found.canvas.logp.gather(1, found.holes), schedule)
        asked = found.holes[:, : seen.shape[1]]
        logp = seen.logp(found.canvas.at(asked)).masked_fill(found.canvas.masked_at(asked), 0.0)
        return _by_block(logp, schedule)


def _by_block(logp: AtFloat, schedule: Schedule) -> Float[Tensor, "row block"]:
    short = len(schedule.quotas) * schedule.block - logp.shape[1]
    return torch.nn.functional.pad(logp, (0, short)).unflatten(1, (-1, schedule.block)).sum(2)


def _best(total: Score, found: Candidates, count: int) -> Int[Tensor, " best"]:
    """Of each problem the best `count` distinct ones; ties go to the lower parent, then the lower draw."""
    ranked = total.sort(descending=True, stable=True).indices
    ranked = ranked[_first_seen(found.copies[ranked])]
    problem, place = found.canvas.problem[ranked].sort(stable=True)
    rank = torch.arange(len(place), device=place.device) - torch.searchsorted(problem, problem)
    return ranked[place][rank < count]


def _first_seen(values: Rows) -> Bool[Tensor, " row"]:
    ordered, place = values.sort(stable=True)
    new = torch.ones_like(ordered, dtype=torch.bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return torch.zeros_like(new).scatter(0, place, new)
