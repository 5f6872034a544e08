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
from unmask.tasks import Countdown, MiniGsm, MiniMath, Task

LENGTH, PROBLEMS = 64, 8  # masks, problems a family
FAMILIES: tuple[type[Any], ...] = (Countdown, MiniGsm, MiniMath)


def measure(decoder: Decoder, device: torch.device, seed: int = 0, problems: int = PROBLEMS) -> dict[str, Any]:
    model = load("tiny", device, torch.float32)
    steps: Counter[int] = Counter()  # of blocks with text
    ended: Counter[int] = Counter()  # of blocks of end-of-text alone
    writes: Counter[int] = Counter()  # of the best row's steps
    families = [family(split="validation") for family in FAMILIES]
    for task in families:
        for canvas in _canvases(model, task, problems):
            frames: list[Frame] = []
            decode(decoder, model.denoiser, canvas, seed, watch=lambda _, frame, seen=frames: seen.append(frame))
            _count(frames, canvas, model, steps, ended)
            order = frames[-1].canvas.order[0]
            writes.update(Counter(order[order > 0].tolist()).values())
    return {
        "model": model.name,
        "tasks": [type(task).family for task in families],
        "problems": problems * len(families),
        "length": LENGTH,
        "seed": seed,
        "steps_a_block": dict(sorted(steps.items())),
        "steps_an_ended_block": dict(sorted(ended.items())),
        "writes_a_step": dict(sorted(writes.items())),
        "mean_steps": fmean(steps.elements()),
    }


def _canvases(model: Model, task: Task, problems: int) -> Iterator[Canvas]:
    denoiser: Denoiser = model.denoiser
    for problem in islice(task.problems(), problems):
        ids = read_prompt(model, task.messages(problem)).ids
        yield Canvas.blank([ids], LENGTH, denoiser.mask_id, device=denoiser.device, dtype=denoiser.dtype)


def _count(frames: list[Frame], canvas: Canvas, model: Model, steps: Counter[int], ended: Counter[int]) -> None:
    """A block ends with its search."""
    ends = [number for number, frame in enumerate(frames, 1) if frame.branch is not None]
    holes, text = canvas.holes[0], frames[-1].canvas.tokens[0]
    for block, (before, end) in enumerate(zip([0, *ends], ends, strict=False)):
        size = -(-len(holes) // len(ends))
        written = text[holes[block * size : (block + 1) * size]].tolist()
        (ended if set(written) <= model.eos else steps)[end - before] += 1
