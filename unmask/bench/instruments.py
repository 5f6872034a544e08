"""Everything here that touches the denoiser protocol: counting, timing, decoding, and comparing with the plain loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from unmask.bench import reference_loops as plain
from unmask.bench.cases import Sizes
from unmask.bench.measurement import Measurement, Tokens
from unmask.bench.subject import Subject
from unmask.core import Beliefs, CacheView, Canvas, Decoder, Denoiser, Noise, Wrapper, decode
from unmask.core.beliefs import CPU_CHUNK
from unmask.core.shapes import Columns
from unmask.models.network.network import take


def measured_decode(
    decoder: Decoder,
    denoiser: Denoiser,
    canvas: Canvas,
    seed: int,
    measurement: Measurement,
    merged: bool = True,
    whole_head: bool = False,
) -> Tokens:
    """The tokens of each problem's best row, without padding."""
    counted = Observed(denoiser, after=partial(_count, measurement))

    def adapt(metered: Denoiser, canvas: Canvas) -> Denoiser:
        del canvas
        inner = metered if merged else counted
        return Observed(WholeHead(inner) if whole_head else inner, before=measurement.call_begins)

    measurement.mark("denoising")
    results = decode(decoder, counted, canvas, seed, adapt=adapt, watch=lambda numbers, frame: measurement.step_ended())
    return [result.canvas.tokens[0, int(result.canvas.pad[0]) :].tolist() for result in results]


class Observed(Wrapper):
    """Reports the beginning of every call to `before`, and what it computed to `after`."""

    def __init__(
        self,
        inner: Denoiser,
        before: Callable[[], None] = lambda: None,
        after: Callable[[Canvas, Columns, Beliefs], None] = lambda canvas, at, beliefs: None,
    ):
        super().__init__(inner)
        self.before, self.after = before, after

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        self.before()
        beliefs = self.inner(canvas, at, cache)
        self.after(canvas, at, beliefs)
        return beliefs


def _count(measurement: Measurement, canvas: Canvas, at: Columns, beliefs: Beliefs) -> None:
    lengths = canvas.width - canvas.pad
    computed = lengths if beliefs.computed is None else beliefs.computed
    measurement.count(len(canvas), computed.sum(), (computed * lengths).sum(), at.numel())


def counted_forward(forward: plain.Forward, measurement: Measurement) -> plain.Forward:
    """The same counts for the plain loops, which take logits at every position."""

    def counted(tokens: Tensor) -> Tensor:
        positions = tokens.numel()
        measurement.count(len(tokens), positions, positions * tokens.shape[1], positions)
        return forward(tokens)

    return counted


class WholeHead(Wrapper):
    """Computes logits at every position, as the published loops do, and keeps the requested ones."""

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        del cache
        columns = torch.arange(canvas.width, device=at.device).expand(len(canvas), -1)
        every = self.inner(canvas, columns)
        row = torch.arange(len(canvas), device=at.device)[:, None] * canvas.width
        wanted = (row + at).flatten()  # ascending, as the columns of `at` are
        chunks = torch.arange(columns.numel(), device=at.device).split(max(1, CPU_CHUNK // every.vocab))
        logits = torch.cat([_wanted(every, places, wanted) for places in chunks])
        return Beliefs(logits.__getitem__, (at.shape[0], at.shape[1]), every.vocab, every.mask_id, every.device)


def _wanted(every: Beliefs, places: Tensor, wanted: Tensor) -> Tensor:
    inside = wanted[(wanted >= places[0]) & (wanted <= places[-1])]
    return every.read(places)[inside - places[0]]


@torch.inference_mode()
def agreement(subject: Subject, denoiser: Denoiser, sizes: Sizes, seed: int = 0) -> dict[str, Any]:
    """Compare with the plain loop at the start of each block, after random tokens: log p of all tokens, and draws."""
    difference, equal, draws = 0.0, 0, 0
    for done in range(0, sizes.length, sizes.block):
        before = subject.random_ids(sizes.beams, (sizes.prompt or sizes.block) + done, seed=done)
        canvas = subject.canvas(before, sizes.length - done)
        at = canvas.slots[:, : sizes.block]
        noise = Noise.of(canvas, seed)
        expected, beliefs = plain.logits(subject.forward, canvas.tokens, canvas.mask_id), denoiser(canvas, at)
        token, _ = beliefs.draw(noise.uniform("token", 1, canvas.places(at), 1), sizes.temperature)
        logits = beliefs.logits(torch.arange(at.numel(), device=at.device))
        difference = max(difference, _distance(logits, take(expected, at).flatten(0, 1), canvas.mask_id))
        for row, x in enumerate(canvas.tokens):
            row_noise = noise.rows(at.new_tensor([row]))
            full = plain.complete(x, expected[row], canvas.mask_id, row_noise, "token", 1, 0, sizes.temperature)
            equal += int((full[at[row]] == token[row, :, 0]).sum())
        draws += at.numel()
    return {"largest_log_p_difference": difference, "equal_draws": equal, "draws": draws, "share": equal / draws}


def _distance(logits: Tensor, expected: Tensor, mask_id: int) -> float:
    """The largest difference in log p, the mask token aside."""
    apart = (logits.log_softmax(1) - expected.log_softmax(1)).abs()
    apart[:, mask_id] = 0.0
    return float(apart.max())
