"""The driver of decoders: it checks and groups problems, counts and times the work, and reads the frames."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from unmask.core.canvas import Canvas
from unmask.core.decoder import Decoder, Frame, resolve
from unmask.core.denoiser import Cost, Denoiser, Listener, Meter
from unmask.core.rows import Judge, Rows, judged, leads_of
from unmask.core.text import check_context
from unmask.errors import UnmaskError

# Wraps the counted model for the decoder: guidance, suppression, early end. Gets the canvas before anything is written.
Adapter = Callable[[Denoiser, Canvas], Denoiser]
# Called with the numbers of a frame's problems in the given canvas, and the frame.
Watch = Callable[[list[int], Frame], None]


@dataclass(frozen=True)
class Decoded:
    """The final rows of one problem, on the CPU."""

    canvas: Canvas
    score: list[float]
    cost: Cost
    verdicts: list[float] | None = None  # what a check says of each row, where there is one


class Session:
    """A decoder at work on problems with equally many masks: iterate over its frames, then read its results."""

    def __init__(
        self,
        decoder: Decoder,
        denoiser: Denoiser,
        canvas: Canvas,
        seed: int | Sequence[int] = 0,  # one for all problems, or one for each
        adapt: Adapter | None = None,
        listen: bool = False,
        judge: Judge | None = None,
    ):
        if not len(canvas):
            raise UnmaskError("there is nothing to decode: give at least one prompt")
        check_context(int((canvas.width - canvas.pad).max()), denoiser.context)
        self.began = time.perf_counter()
        if denoiser.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(denoiser.device)
        numbers = torch.arange(len(canvas), device=canvas.tokens.device)
        self.canvas = replace(canvas, problem=numbers)
        self.meter = Meter(denoiser, len(canvas))
        self.model = adapt(self.meter, self.canvas) if adapt else self.meter
        self.listener = Listener(self.model) if listen else None
        with torch.inference_mode():
            self.rows = Rows.start(self.canvas, self.listener or self.model, seed, judge)
        self.decoder = resolve(decoder, denoiser.block_size, self.rows.length)
        self.frame: Frame | None = None

    def __iter__(self) -> Iterator[Frame]:
        frames = self.decoder(self.rows)
        while True:
            with torch.inference_mode():  # entered anew for each frame: a generator must not leak it to its reader
                frame = next(frames, None)
                if frame is None:
                    return
                exchanges = self.listener.take() if self.listener else ()
                self.frame = replace(frame, forward_passes=self.meter.counts[0].clone(), exchanges=exchanges)
            yield self.frame

    def results(self) -> list[Decoded]:
        """Return the result of each problem, after the last frame."""
        if self.frame is None:
            raise UnmaskError("the decoder ended without a frame")
        return [*self._decoded(self.frame, range(len(self.canvas))).values()]

    def ended(self) -> dict[int, Decoded]:
        """Return results, by number, of problems that ended with the current frame while others continue."""
        if self.frame is None or self.frame.ended is None:
            return {}
        return self._decoded(self.frame.ended, self.frame.ended.canvas.problem.unique().tolist())

    def _decoded(self, frame: Frame, problems: Sequence[int]) -> dict[int, Decoded]:
        canvas, score = frame.canvas.cpu(), frame.score.cpu()
        seconds = time.perf_counter() - self.began  # the device has finished by now
        if score.isnan().any():
            raise UnmaskError("the model returned logits that are not numbers: check its weights and dtype")
        if not canvas.done:
            raise UnmaskError(f"the decoder ended with {int(canvas.masked.sum())} masks left: write every slot")
        judge = self.rows.judge
        verdicts = [score for score, _ in judged(judge, canvas)] if judge else None
        counts, results, device = self.meter.counts.T.tolist(), {}, self.model.device
        memory = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
        shared = {"seconds": seconds / len(self.canvas), "memory": memory, "batch_seconds": seconds}
        for problem in problems:
            rows = (canvas.problem == problem).nonzero()[:, 0]
            checks = judge.cost(problem) if judge else (0, 0.0)
            cost = Cost(self.meter.calls, *counts[problem], **shared, checks=checks[0], check_seconds=checks[1])
            said = verdicts and [verdicts[row] for row in rows.tolist()]
            results[problem] = Decoded(canvas.rows(rows), score[rows].tolist(), cost, said)
        return results


def decode(
    decoder: Decoder,
    denoiser: Denoiser,
    canvas: Canvas,
    seed: int = 0,
    *,
    adapt: Adapter | None = None,
    watch: Watch | None = None,
    listen: bool = False,
    judge: Callable[[list[int]], Judge | None] | None = None,
) -> list[Decoded]:
    """Return the final rows of every problem, in the canvas's order. With `listen`, frames hold their model calls.

    `judge` returns what checks the texts of a batch of problems, given their numbers in the canvas.
    """
    results: dict[int, Decoded] = {}
    for numbers in _alike(canvas, denoiser.block_size):
        group = torch.tensor(numbers, device=canvas.tokens.device)
        session = Session(decoder, denoiser, canvas.rows(group), seed, adapt, listen, judge and judge(numbers))
        for frame in session:
            if watch:
                watch(numbers, frame)
        results |= zip(numbers, session.results(), strict=True)
    return [results[row] for row in range(len(canvas))]


def _alike(canvas: Canvas, block: int | None) -> list[list[int]]:
    """Group rows with equally many masks, which for a block-causal model begin at the same place of a block."""
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row, (count, lead) in enumerate(zip(canvas.masked.sum(1).tolist(), leads_of(canvas, block), strict=True)):
        groups[count, -1 if lead is None else lead].append(row)
    return [groups[key] for key in sorted(groups)]
