"""Time on a device: marks that never wait for it, and the products a second it can be brought to.

On a CPU it is the processor's own time, over all threads, which other work on the machine leaves alone.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from itertools import pairwise

import torch

from unmask.core import Canvas, Denoiser, Frame, Wrapper
from unmask.core.beliefs import Beliefs
from unmask.core.shapes import Columns

PRODUCTS = {"cuda": (8192, 20), "cpu": (1024, 10)}  # side of the square matrices, how often


class Clock:
    """Spans of labelled time: CUDA events on a GPU, read once at the end."""

    def __init__(self, device: torch.device):
        self.device = device
        self.marks: list[tuple[str, float | torch.cuda.Event]] = []

    def mark(self, label: str) -> None:
        """From here on time belongs to `label`."""
        if self.device.type != "cuda":
            self.marks.append((label, now(self.device)))
            return
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device))
        self.marks.append((label, event))

    def spans(self) -> dict[str, float]:
        """Seconds of each label; the last mark only ends the one before it."""
        wait(self.device)
        sums: dict[str, float] = defaultdict(float)
        for (label, begin), (_, end) in pairwise(self.marks):
            if isinstance(begin, torch.cuda.Event) and isinstance(end, torch.cuda.Event):
                sums[label] += begin.elapsed_time(end) / 1e3
            elif isinstance(begin, float) and isinstance(end, float):
                sums[label] += end - begin
        return dict(sums)


class Stopwatch:
    """Tells denoising from scoring: in a step the first question denoises, a second one scores candidates."""

    def __init__(self, device: torch.device):
        self.clock = Clock(device)
        self.asked = False  # in this step
        self.steps = 0
        self.clock.mark("denoising")

    def frame(self, numbers: list[int], frame: Frame) -> None:
        del numbers, frame
        self.steps += 1
        self.asked = False
        self.clock.mark("denoising")

    def begins(self) -> None:
        if self.asked:
            self.clock.mark("scoring")


class Timed(Wrapper):
    """A denoiser whose questions a stopwatch sees."""

    def __init__(self, inner: Denoiser, watch: Stopwatch):
        super().__init__(inner)
        self.watch = watch

    def __call__(self, canvas: Canvas, at: Columns) -> Beliefs:
        self.watch.begins()
        self.watch.asked = True
        return self.inner(canvas, at)

    def hold(self, canvas: Canvas, fresh: Columns) -> Timed:
        self.watch.begins()
        return Timed(self.inner.hold(canvas, fresh), self.watch)


def now(device: torch.device) -> float:
    return time.process_time() if device.type == "cpu" else time.perf_counter()


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak(device: torch.device, dtype: torch.dtype) -> dict[str, float]:
    """Floating-point operations a second of one large product of square matrices: the median of several."""
    side, times = PRODUCTS.get(device.type, PRODUCTS["cpu"])
    one = torch.randn(side, side, device=device).to(dtype)
    took = []
    for _ in range(times + 3):
        clock = Clock(device)
        clock.mark("product")
        _ = one @ one
        clock.mark("end")
        took.append(clock.spans()["product"])
    return {"flops": 2 * side**3 / statistics.median(took[3:]), "side": side, "times": times}
