"""How many steps a block takes with threshold writing, measured on the embedded model.

Random weights are never confident. Threshold writing on a shape therefore takes as many steps per block as the embedded
model takes for blocks that hold text. Blocks of end-of-text alone would take fewer.
"""

from __future__ import annotations

from collections import Counter
from statistics import fmean
from typing import Any

import torch

from unmask.bench.subject import Subject
from unmask.core import Canvas, Decoder, Frame, decode
from unmask.models import load
from unmask.tasks import Countdown, MiniGsm, MiniMath, Task, task

LENGTH = 64
TASKS: tuple[Task, ...] = (
    Countdown(level=4, split="validation"),
    MiniGsm(split="validation"),
    MiniMath(split="validation"),
)


def observe(decoder: Decoder, device: torch.device, problems: int, seed: int = 0) -> dict[str, Any]:
    """Counts of steps per block and of positions written per step, over `problems` of each task."""
    model = load("tiny", device, torch.float32)
    subject = Subject.of_model(model)
    steps: Counter[int] = Counter()
    ended: Counter[int] = Counter()  # for blocks of end-of-text alone
    writes: Counter[int] = Counter()  # of the best row
    for prompt in [prompt for family in TASKS for prompt in subject.task_prompts(family, problems)]:
        canvas = subject.canvas([prompt], LENGTH)
        shown: list[Frame] = []
        decode(decoder, model.denoiser, canvas, seed, watch=lambda _, frame, shown=shown: shown.append(frame))
        for count, tokens in _blocks(shown, canvas):
            (ended if tokens <= model.eos else steps)[count] += 1
        order = shown[-1].canvas.order[0]
        writes.update(Counter(order[order > 0].tolist()).values())
    return {
        "model": model.name,
        "tasks": [task.spec(family) for family in TASKS],
        "problems": problems * len(TASKS),
        "length": LENGTH,
        "seed": seed,
        "steps_a_block": dict(sorted(steps.items())),
        "steps_an_ended_block": dict(sorted(ended.items())),
        "writes_a_step": dict(sorted(writes.items())),
        "mean_steps": fmean(steps.elements()),
    }


def _blocks(shown: list[Frame], canvas: Canvas) -> list[tuple[int, set[int]]]:
    """The number of steps and the tokens of each block. A block ends with its search."""
    ends = [number for number, frame in enumerate(shown, 1) if frame.branch is not None]
    slots, text = canvas.slots[0], shown[-1].canvas.tokens[0]
    tokens = [set(text[part].tolist()) for part in slots.split(-(-len(slots) // len(ends)))]
    return [(end - begin, part) for begin, end, part in zip([0, *ends], ends, tokens, strict=False)]
