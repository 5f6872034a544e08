"""How many steps a block takes when every sure position is written at once, measured on the embedded model.

Random weights are never sure, so a shape's threshold writing is replayed: it takes as many steps as the embedded model
did on its own problems, where each block holds some text. Blocks of nothing but end-of-text would be quicker still.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from statistics import fmean
from typing import Any

import torch

from unmask.core import Canvas, Decoder, Denoiser, Frame, decode
from unmask.models import Model, load
from unmask.runs.prompt import read_prompt
from unmask.tasks import Countdown, MiniGsm, MiniMath, Task, task

LENGTH = 64
TASKS: tuple[Task, ...] = (
    Countdown(level=4, split="validation"),
    MiniGsm(split="validation"),
    MiniMath(split="validation"),
)


def measure(decoder: Decoder, device: torch.device, problems: int, seed: int = 0) -> dict[str, Any]:
    model = load("tiny", device, torch.float32)
    steps: Counter[int] = Counter()  # of blocks with text
    ended: Counter[int] = Counter()  # of blocks of end-of-text alone
    writes: Counter[int] = Counter()  # of the best row's steps
    for one in TASKS:
        for canvas in _canvases(model, one, problems):
            frames: list[Frame] = []
            decode(decoder, model.denoiser, canvas, seed, watch=lambda _, frame, seen=frames: seen.append(frame))
            _count(frames, canvas, model, steps, ended)
            order = frames[-1].canvas.order[0]
            writes.update(Counter(order[order > 0].tolist()).values())
    return {
        "model": model.name,
        "tasks": [task.spec(one) for one in TASKS],
        "problems": problems * len(TASKS),
        "length": LENGTH,
        "seed": seed,
        "steps_a_block": _histogram(steps),
        "steps_an_ended_block": _histogram(ended),
        "writes_a_step": _histogram(writes),
        "mean_steps": fmean(steps.elements()),
    }


def _histogram(counts: Counter[int]) -> dict[str, int]:
    return {str(number): count for number, count in sorted(counts.items())}


def _canvases(model: Model, asked: Task, problems: int) -> Iterator[Canvas]:
    denoiser: Denoiser = model.denoiser
    for problem in islice(asked.problems(), problems):
        ids = read_prompt(model, asked.messages(problem)).ids
        yield Canvas.blank([ids], LENGTH, denoiser.mask_id, device=denoiser.device, dtype=denoiser.dtype)


def _count(frames: list[Frame], canvas: Canvas, model: Model, steps: Counter[int], ended: Counter[int]) -> None:
    """A block ends with its search."""
    ends = [number for number, frame in enumerate(frames, 1) if frame.branch is not None]
    holes, text = canvas.holes[0], frames[-1].canvas.tokens[0]
    for block, (before, end) in enumerate(zip([0, *ends], ends, strict=False)):
        size = -(-len(holes) // len(ends))
        written = text[holes[block * size : (block + 1) * size]].tolist()
        (ended if set(written) <= model.eos else steps)[end - before] += 1
