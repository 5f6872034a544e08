"""The driver: checks, groups, counts and times a decoding, and reads its frames."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from unmask.core.canvas import Canvas
from unmask.core.cost import Cost, Metered
from unmask.core.decoder import Decoder, Frame
from unmask.core.denoiser import Denoiser
from unmask.core.errors import UnmaskError
from unmask.core.noise import Noise


@dataclass(frozen=True)
class Decoded:
    """All final rows of one problem."""

    canvas: Canvas
    score: list[float]
    cost: Cost


def stream(decoder: Decoder, denoiser: Denoiser, canvas: Canvas, seed: int = 0) -> Iterator[Frame]:
    """Frames of a decoding as they come. Rows of the canvas need equally many masks."""
    _check(denoiser, canvas)
    decoder = decoder.resolved(canvas.holes.shape[1])
    with torch.inference_mode():
        noise = Noise.of(canvas, seed)
    frames = decoder(denoiser, canvas, noise)
    while True:
        with torch.inference_mode():  # entered anew for each frame: a generator must not leak it to its reader
            frame = next(frames, None)
        if frame is None:
            return
        yield frame


def decode(decoder: Decoder, denoiser: Denoiser, canvas: Canvas, seed: int = 0) -> list[Decoded]:
    """The final rows of every problem, in the canvas's order, whatever their numbers of masks."""
    results: dict[int, Decoded] = {}
    for group in _alike(canvas):
        part = canvas.rows(group)
        results |= zip(group.tolist(), _decode_alike(decoder, denoiser, part, seed), strict=True)
    return [results[row] for row in range(len(canvas))]


def _decode_alike(decoder: Decoder, denoiser: Denoiser, canvas: Canvas, seed: int) -> list[Decoded]:
    canvas = _numbered(canvas)
    meter = Metered(denoiser, len(canvas))
    began = time.perf_counter()
    if denoiser.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(denoiser.device)
    frame = last(stream(decoder, meter, canvas, seed))
    if frame.score.isnan().any():
        raise UnmaskError("the model gave logits that are not numbers: check its weights and dtype")
    memory = torch.cuda.max_memory_allocated(denoiser.device) if denoiser.device.type == "cuda" else 0
    seconds = time.perf_counter() - began
    results = []
    for problem, counts in enumerate(meter.counts.T.tolist()):
        mine = (frame.canvas.problem == problem).nonzero()[:, 0]
        cost = Cost(meter.calls, *counts, seconds=seconds, memory=memory)
        results.append(Decoded(frame.canvas.rows(mine), frame.score[mine].tolist(), cost))
    return results


def last(frames: Iterator[Frame]) -> Frame:
    kept = deque(frames, maxlen=1)
    if not kept:
        raise UnmaskError("the decoder ended without a frame")
    return kept[0]


def _check(denoiser: Denoiser, canvas: Canvas) -> None:
    if not len(canvas):
        raise UnmaskError("there is nothing to decode: give at least one prompt")
    longest = int((canvas.width - canvas.pad).max())
    if longest > denoiser.context:
        raise UnmaskError(
            f"prompt and answer need {longest} positions, the model takes {denoiser.context}: "
            f"shorten the length by {longest - denoiser.context} or the prompt"
        )


def _alike(canvas: Canvas) -> list[torch.Tensor]:
    """Rows by how many masks they have."""
    counts = canvas.masked.sum(1)
    return [(counts == count).nonzero()[:, 0] for count in counts.unique().tolist()]


def _numbered(canvas: Canvas) -> Canvas:
    """Problems are numbered within their own group, so that costs can be counted by them."""
    rows = torch.arange(len(canvas), device=canvas.tokens.device)
    return Canvas(**{**vars(canvas), "problem": rows, "source": rows})
