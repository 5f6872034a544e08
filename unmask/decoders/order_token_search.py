"""Order-Token Search (arXiv 2601.20339, Algorithm 1): beams over order and tokens, pruned by re-predicting blocks.

K rows are denoised alone by low-confidence remasking with tempered draws. At a search step every row draws K full
completions of its one forward; each candidate's block is masked inside its completion and predicted again, and the
K candidates of highest total live on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unmask.core import Branch, Canvas, Denoiser, Frame, Held, Noise, Schedule, Step, decoder, lasts
from unmask.core.shapes import Columns, Float, Rows
from unmask.decoders.path import check_sure, check_temperature
from unmask.errors import UnmaskError
from unmask.policies.order import foremost
from unmask.policies.score import READINGS, Likelihood, score_blocks
from unmask.policies.token import pick


@dataclass(frozen=True)
class Beams:
    """K rows a problem, problem by problem, each with its noise and the scores of its blocks."""

    canvas: Canvas
    noise: Noise
    blocks: Float[Tensor, "row block"]
    total: Float[Tensor, " row"]
    holes: Columns


@decoder("order-token-search", "ots")
@dataclass(frozen=True)
class OrderTokenSearch:
    beams: int = 4  # K: rows that live on, and completions each draws at a search
    block: int | None = None  # masks a block; 32, or all of them when there are fewer
    steps: int | None = None  # in all; half the masks, or all of them for block 1
    temperature: float = 0.4
    interval: int | None = None  # N: also search at every N-th step; always at the last of each block
    likelihood: Likelihood = "block"
    samples: int = 1  # M: completions a candidate's score is averaged over
    sure: float | None = None  # approximate: also write draws of at least this probability (0.9: tiny loses 3 points)

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        if self.sure is not None:
            check_sure(self.sure)
            if self.interval is not None:
                raise UnmaskError("sure runs ahead of the steps that interval counts: choose one of them")
        if self.likelihood not in READINGS:
            raise UnmaskError(f"unknown likelihood {self.likelihood!r}: known: {', '.join(READINGS)}")
        for name in ("beams", "samples", "interval"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UnmaskError(f"{name}={value} does not work: choose 1 or more")

    def __call__(self, denoiser: Denoiser, canvas: Canvas, noise: Noise) -> Iterator[Frame]:
        schedule = Schedule.plan(canvas.holes.shape[1], self.block, self.steps)
        beams = self._start(canvas, noise, len(schedule.quotas))
        local, last = None, [quotas[-1] for quotas in schedule.quotas]
        for step in schedule:
            if local is None or step.holds(lasts(denoiser)):
                local = Held.of(denoiser, beams.canvas, fresh=beams.holes[:, step.holes])
            if self._searches(step):
                beams, branch = self._search(local, beams, step)
                local = local.rows(beams.canvas.source)
                yield Frame(beams.canvas, beams.total, step.number, branch)
            elif self.sure is None:
                beams = self._walk(local, beams, step)
                yield Frame(beams.canvas, beams.total, step.number)
            elif len(going := self._going(beams, step, last[step.block])):
                beams = self._run(local, beams, step, going, last[step.block], self.sure)
                yield Frame(beams.canvas, beams.total, step.number)

    @property
    def choice(self) -> str:
        return "score"

    def resolved(self, length: int) -> OrderTokenSearch:
        schedule = Schedule.plan(length, self.block, self.steps)
        return replace(self, block=schedule.block, steps=schedule.steps)

    def rows(self, length: int) -> int:
        schedule = Schedule.plan(length, self.block, self.steps)
        searches = sum(map(self._searches, schedule))
        return schedule.steps * self.beams + searches * self.samples * self.beams**2

    def _searches(self, step: Step) -> bool:
        return step.last or (self.interval is not None and step.number % self.interval == 0)

    def _start(self, canvas: Canvas, noise: Noise, blocks: int) -> Beams:
        """K copies of each problem's row: children 0 … K−1 of the root."""
        parent = torch.arange(len(canvas), device=canvas.tokens.device).repeat_interleave(self.beams)
        draw = torch.arange(self.beams, device=parent.device).repeat(len(canvas))
        scores = canvas.logp.new_zeros(len(parent), blocks)
        rows = canvas.rows(parent)
        return Beams(rows, noise.children(parent, draw, 0), scores, scores.sum(1), canvas.holes[parent])

    def _walk(self, denoiser: Held, beams: Beams, step: Step) -> Beams:
        """Each row alone: draw the block, write the surest."""
        at = beams.canvas.open(beams.holes[:, step.holes], step.open)
        beliefs = denoiser(beams.canvas, at)
        places = beams.canvas.places(at)
        token, logp = pick(beliefs, self.temperature, beams.noise, step.number, places)
        return replace(beams, canvas=_transfer(beams.canvas, at, token[:, :, 0], logp[:, :, 0], step))

    def _going(self, beams: Beams, step: Step, left: int) -> Rows:
        """Rows with more masks in the block than the search will write; the others wait for them."""
        masks = beams.canvas.masked_at(beams.holes[:, step.holes]).sum(1)
        return (masks > left).nonzero()[:, 0]

    def _run(self, denoiser: Held, beams: Beams, step: Step, going: Rows, left: int, sure: float) -> Beams:
        """As `_walk`, of some rows, each of which also writes what it is sure of, all but `left`."""
        everyone = len(going) == len(beams.canvas)
        canvas = beams.canvas if everyone else beams.canvas.rows(going)
        at = canvas.open(beams.holes[going][:, step.holes], step.open)
        beliefs = (denoiser if everyone else denoiser.rows(going))(canvas, at)
        token, logp = pick(beliefs, self.temperature, beams.noise.rows(going), step.number, canvas.places(at))
        token, logp, masked = token[:, :, 0], logp[:, :, 0], canvas.masked_at(at)
        surest = (masked & (logp.exp() >= sure)).sum(1, keepdim=True).clamp(min=step.quota)
        count = torch.minimum(surest, masked.sum(1, keepdim=True) - left)
        canvas = canvas.write(at, token, foremost(logp, masked, count), step.number, logp)
        return replace(beams, canvas=beams.canvas.replace_rows(going, canvas))

    def _search(self, local: Held, beams: Beams, step: Step) -> tuple[Beams, Branch]:
        """Branch into K² candidates a problem, score them, keep the best K.

        What stands before the block, or before what is hidden for its score, stays held; what follows is drawn anew.
        """
        reading = READINGS[self.likelihood](step.holes)
        local = local.hold(beams.canvas, fresh=beams.holes[:, reading.hidden.start :])
        block = beams.canvas.open(beams.holes[:, step.holes], step.open)
        rest = torch.cat([block, beams.holes[:, step.holes.stop :]], dim=1)
        beliefs = local(beams.canvas, rest)
        places = beams.canvas.places(rest)
        token, logp = pick(beliefs, self.temperature, beams.noise, step.number, places, draws=self.beams)

        parent = torch.arange(len(beams.canvas), device=token.device).repeat_interleave(self.beams)
        draw = torch.arange(self.beams, device=token.device).repeat(len(beams.canvas))
        token, logp = _by_draw(token), _by_draw(logp)  # (row·draw, at)
        before = beams.canvas.rows(parent)
        after = _transfer(before, block[parent], token[:, : step.open], logp[:, : step.open], step)
        children = beams.noise.children(parent, draw, step.number)
        candidates = Beams(after, children, beams.blocks[parent], beams.total[parent], beams.holes[parent])

        completions = [_complete(after, rest[parent], token)]
        if self.samples > 1:  # the others come from each candidate's own stream
            mine = beliefs.rows(parent), self.temperature, children, step.number, places[parent]
            again, _ = pick(*mine, draws=self.samples, purpose="sample")
            completions += [_complete(after, rest[parent], drawn) for drawn in again.unbind(2)[1:]]
        candidates = self._scored(local.rows(parent), candidates, completions, step)
        return self._prune(candidates, completions[0], parent, draw, step)

    def _scored(self, denoiser: Held, beams: Beams, completions: list[Canvas], step: Step) -> Beams:
        """All completions of all candidates in one forward: the block hidden, its log p summed."""
        every = torch.arange(len(beams.canvas), device=beams.holes.device).repeat(self.samples)
        full = beams.canvas.rows(every)
        full = replace(full, tokens=torch.cat([completion.tokens for completion in completions]))
        blocks = score_blocks(denoiser.rows(every), self.likelihood, full, beams.holes[every], beams.blocks, step)
        return replace(beams, blocks=blocks, total=blocks.sum(1))

    def _prune(
        self, candidates: Beams, completion: Canvas, parent: Tensor, draw: Tensor, step: Step
    ) -> tuple[Beams, Branch]:
        """The best K of each problem's K²; ties go to the lower parent, then the lower draw."""
        totals = candidates.total.view(-1, self.beams**2)  # (problem, parent·draw)
        best = totals.sort(dim=1, descending=True, stable=True).indices[:, : self.beams]
        best = (best + torch.arange(len(totals), device=best.device)[:, None] * self.beams**2).flatten()
        kept = torch.zeros_like(parent, dtype=torch.bool).scatter(0, best, True)
        branch = Branch(candidates.canvas, completion.tokens, parent, draw, candidates.total, candidates.blocks, kept)
        survivors = Beams(
            replace(candidates.canvas.rows(best), source=parent[best]),
            candidates.noise.rows(best),
            candidates.blocks[best],
            candidates.total[best],
            candidates.holes[best],
        )
        return survivors, branch


def _transfer(canvas: Canvas, at: Columns, token: Tensor, logp: Tensor, step: Step) -> Canvas:
    """Low-confidence: write the quota of the block's masks whose drawn token is likeliest."""
    return canvas.write(at, token, foremost(logp, canvas.masked_at(at), step.quota), step.number, logp)


def _complete(canvas: Canvas, at: Columns, token: Tensor) -> Canvas:
    """Fill what is still masked from a full draw."""
    return canvas.write(at, token, canvas.masked_at(at), 0, torch.zeros_like(token, dtype=canvas.logp.dtype))


def _by_draw(drawn: Tensor) -> Tensor:
    return drawn.permute(0, 2, 1).flatten(0, 1)  # (row, at, draw) → (row·draw, at)
