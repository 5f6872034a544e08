"""What one run costs: seconds, network calls, rows, positions, FLOPs and memory."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from unmask.models.network.transformer import Shape

Tokens = list[list[int]]  # prompt and answer of each problem
PRODUCTS = {"cuda": (8192, 20), "cpu": (1024, 10)}  # size of the square matrices, number of products


@dataclass
class Measurement:
    """One run. Counts are taken where the network is called, so merged rows count once."""

    device: torch.device
    tokens: Tokens = field(default_factory=list)  # of the best rows
    seconds: float = 0.0
    wall: float = 0.0  # differs from `seconds` on a CPU: several threads, or other processes on the machine
    memory: int = 0  # peak bytes above the baseline; 0 on a CPU
    calls: int = 0
    rows: int = 0
    positions: int | Tensor = 0  # without padding; a tensor on a GPU, so that counting does not wait for the device
    pairs: int | Tensor = 0  # pairs of positions that attention compares
    logits: int = 0  # positions whose logits were computed
    steps: int = 0  # 0 when steps are not observed
    called: bool = False  # whether the current step has called the network
    marks: list[tuple[str, Any]] = field(default_factory=list)  # a label, and the moment from which it holds
    spans: dict[str, float] = field(default_factory=dict)  # seconds per label

    def count(self, rows: int, positions: int | Tensor, pairs: int | Tensor, logits: int) -> None:
        self.calls += 1
        self.rows += rows
        self.positions = self.positions + positions
        self.pairs = self.pairs + pairs
        self.logits += logits

    def step_ended(self) -> None:
        self.steps += 1
        self.called = False
        self.mark("denoising")

    def call_begins(self) -> None:
        """The first network call of a step denoises, later ones score candidates."""
        if self.called:
            self.mark("scoring")
        self.called = True

    def mark(self, label: str) -> None:
        """Time belongs to `label` from now on. On a GPU this records an event and does not wait."""
        moment: Any = now(self.device)
        if self.device.type == "cuda":
            moment = torch.cuda.Event(enable_timing=True)
            moment.record(torch.cuda.current_stream(self.device))
        self.marks.append((label, moment))

    def end(self) -> None:
        """Read the marks. The last one only ends the stretch before it."""
        for (label, begin), (_, end) in pairwise(self.marks):
            seconds = begin.elapsed_time(end) / 1e3 if self.device.type == "cuda" else end - begin
            self.spans[label] = self.spans.get(label, 0.0) + seconds
        self.marks.clear()

    def flops(self, shape: Shape) -> int:
        """Floating-point operations of the matrix products. Norms, rotations and sampling are not counted."""
        attention = 2 * shape.width * (shape.q_width + shape.kv_width) * shape.layers
        mlps = sum(3 * shape.width * _hidden(shape, layer) for layer in range(shape.layers))
        pairs = 4 * int(self.pairs) * shape.q_width * shape.layers
        return 2 * int(self.positions) * (attention + mlps) + pairs + 2 * self.logits * shape.width * shape.vocab


def _hidden(shape: Shape, layer: int) -> int:
    """Of the MLPs that a position goes through."""
    experts = shape.experts_of(layer)
    return shape.hidden if experts is None else experts.chosen * experts.hidden + experts.shared


@torch.inference_mode()
def measure(
    run: Callable[[Measurement], Tokens | None], device: torch.device, baseline: int | None = None
) -> Measurement:
    """Run once. `baseline` is the memory in bytes to subtract; by default, what is allocated before the run."""
    wait(device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    before = allocated(device) if baseline is None else baseline
    measurement = Measurement(device)
    began, wall = now(device), time.perf_counter()
    measurement.tokens = run(measurement) or []
    wait(device)
    measurement.seconds, measurement.wall = now(device) - began, time.perf_counter() - wall
    measurement.memory = allocated(device, peak=True) - before
    measurement.end()
    return measurement


def peak(device: torch.device, dtype: torch.dtype) -> dict[str, float]:
    """FLOP/s of a large matrix product: the median of several."""
    side, times = PRODUCTS.get(device.type, PRODUCTS["cpu"])
    matrix = torch.randn(side, side, device=device).to(dtype)

    def multiply(measurement: Measurement) -> None:
        del measurement
        torch.mm(matrix, matrix)

    seconds = [measure(multiply, device).seconds for _ in range(times + 3)]
    return {"flops": 2 * side**3 / statistics.median(seconds[3:]), "side": side, "times": times}


def now(device: torch.device) -> float:
    """On a CPU the time of this process, over all its threads: other processes do not affect it."""
    return time.process_time() if device.type == "cpu" else time.perf_counter()


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def allocated(device: torch.device, peak: bool = False) -> int:
    """Bytes on the device; 0 on a CPU."""
    if device.type != "cuda":
        return 0
    return torch.cuda.max_memory_allocated(device) if peak else torch.cuda.memory_allocated(device)
