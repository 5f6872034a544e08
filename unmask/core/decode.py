"""The driver: checks, groups, counts and times a decoding, and reads its frames."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch

from unmask.core.canvas import Canvas
from unmask.core.cost import Cost, Metered
from unmask.core.decoder import Decoder, Frame
from unmask.core.denoiser import Denoiser
from unmask.core.noise import Noise
from unmask.errors import UnmaskError

# What stands between the meter and the decoder: guidance, suppression, early end. Sees the canvas before it is written.
Adapter = Callable[[Denoiser, Canvas], Denoiser]
# Shown every frame, after the numbers its problems have in the canvas that was handed in.
Watch = Callable[[list[int], Frame], None]


@dataclass(frozen=True)
class Decoded:
    """All final rows of one problem, in this machine's own memory."""

    canvas: Canvas
    score: list[float]
    cost: Cost


def stream(decoder: Decoder, denoiser: Denoiser, canvas: Canvas, seed: int = 0) -> Iterator[Frame]:
    """Frames of a decoding as they come. Rows of the canvas need equally many masks."""
    _check(denoiser, canvas)
    canvas = replace(canvas, source=torch.arange(len(canvas), device=canvas.tokens.device))
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


def decode(
    decoder: Decoder,
    denoiser: Denoiser,
    canvas: Canvas,
    seed: int = 0,
    *,
    adapt: Adapter | None = None,
    watch: Watch | None = None,
) -> list[Decoded]:
    """The final rows of every problem, in the canvas's order, whatever their numbers of masks."""
    results: dict[int, Decoded] = {}
    for group in _alike(canvas):
        numbers = group.tolist()
        show = partial(watch, numbers) if watch else None
        part = _decode_alike(decoder, denoiser, canvas.rows(group), seed, adapt, show)
        results |= zip(numbers, part, strict=True)
    return [results[row] for row in range(len(canvas))]


def _decode_alike(
    decoder: Decoder,
    denoiser: Denoiser,
    canvas: Canvas,
    seed: int,
    adapt: Adapter | None,
    show: Callable[[Frame], None] | None,
) -> list[Decoded]:
    canvas = numbered(canvas)
    meter = Metered(denoiser, len(canvas))
    adapted = adapt(meter, canvas) if adapt else meter
    began = time.perf_counter()
    if denoiser.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(denoiser.device)
    frame = last(_shown(stream(decoder, adapted, canvas, seed), show))
    if frame.score.isnan().any():
        raise UnmaskError("the model gave logits that are not numbers: check its weights and dtype")
    memory = torch.cuda.max_memory_allocated(denoiser.device) if denoiser.device.type == "cuda" else 0
    seconds = time.perf_counter() - began
    results, canvas, score = [], frame.canvas.cpu(), frame.score.cpu()
    for problem, counts in enumerate(meter.counts.T.tolist()):
        mine = (canvas.problem == problem).nonzero()[:, 0]
        cost = Cost(meter.calls, *counts, seconds=seconds, memory=memory)
        results.append(Decoded(canvas.rows(mine), score[mine].tolist(), cost))
    return results


def _shown(frames: Iterator[Frame], show: Callable[[Frame], None] | None) -> Iterator[Frame]:
    for frame in frames:
        if show:
            show(frame)
        yield frame


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


def numbered(canvas: Canvas) -> Canvas:
    """Problems are numbered within their own group, so that costs can be counted by them."""
    rows = torch.arange(len(canvas), device=canvas.tokens.device)
    return replace(canvas, problem=rows, source=rows)
