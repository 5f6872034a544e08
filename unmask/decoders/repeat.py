"""A decoder run n times at once: samples are rows of one batch, each with the noise of a run under its own seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from unmask.core import Beliefs, Canvas, Decoder, Denoiser, Frame, Noise, Wrapper, decoder
from unmask.core.shapes import Columns
from unmask.errors import UnmaskError


class Together(Wrapper):
    """What the repeated decoder sees: to it every sample is a problem of its own, to the network it is not."""

    def __init__(self, inner: Denoiser, count: int):
        super().__init__(inner)
        self.count = count

    def __call__(self, canvas: Canvas, at: Columns) -> Beliefs:
        return self.inner(_joined(canvas, self.count), at)

    def hold(self, canvas: Canvas, fresh: Columns) -> Denoiser:
        return Together(self.inner.hold(_joined(canvas, self.count), fresh), self.count)


def repeat(
    inner: Decoder, count: int, denoiser: Denoiser, canvas: Canvas, noise: Noise, ranked: bool = False
) -> Iterator[Frame]:
    """Frames of all samples in step; at the end each sample keeps its best row, `ranked` by score or in order."""
    rows = torch.arange(len(canvas), device=canvas.tokens.device).repeat_interleave(count)
    sample = torch.arange(count, device=rows.device).repeat(len(canvas))
    own = torch.arange(len(rows), device=rows.device)
    apart = replace(canvas.rows(rows), problem=canvas.problem[rows] * count + sample, source=own)
    frame = None
    for frame in inner(Together(denoiser, count), apart, noise.rows(rows).again(sample)):
        yield _together(frame, count)
    if frame is None:
        return
    best = _leaders(frame)
    if ranked:
        best = best[frame.score[best].sort(descending=True, stable=True).indices]
        best = best[(frame.canvas.problem[best] // count).sort(stable=True).indices]
    if best.tolist() != list(range(len(frame.canvas))):
        yield _together(replace(frame, canvas=frame.canvas.rows(best), score=frame.score[best], branch=None), count)


def sampled() -> Decoder:
    """What is repeated unless something else is asked for."""
    return decoder.make("low-confidence(temperature=0.8)")


def check_repeat(count: int, inner: Decoder) -> None:
    if count < 1:
        raise UnmaskError(f"n={count} does not work: choose 1 or more")
    if inner.choice != "score":
        raise UnmaskError("what is repeated must choose by score: votes of votes are not counted")


def _leaders(frame: Frame) -> torch.Tensor:
    """The best row of each problem, in the problems' order; ties go to the first."""
    ranked = frame.score.sort(descending=True, stable=True).indices
    ranked = ranked[frame.canvas.problem[ranked].sort(stable=True).indices]
    problem = frame.canvas.problem[ranked]
    first = torch.ones_like(problem, dtype=torch.bool)
    first[1:] = problem[1:] != problem[:-1]
    return ranked[first]


def _together(frame: Frame, count: int) -> Frame:
    branch = frame.branch and replace(frame.branch, canvas=_joined(frame.branch.canvas, count))
    return replace(frame, canvas=_joined(frame.canvas, count), branch=branch)


def _joined(canvas: Canvas, count: int) -> Canvas:
    return replace(canvas, problem=canvas.problem // count)
