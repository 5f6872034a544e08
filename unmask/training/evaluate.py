"""Decoding accuracy of a model on problems of a task: the number that matters while training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unmask.core import Canvas, Decoder, decode
from unmask.models import Model
from unmask.policies.choice import choose
from unmask.tasks import Problem, Task


@dataclass(frozen=True)
class Tally:
    right: list[bool]  # whether the chosen row of each problem is right
    every: list[list[bool]]  # whether each of its final rows is
    rows: float  # a problem

    @property
    def accuracy(self) -> float:
        return sum(self.right) / len(self.right)


def tally(
    model: Model,
    task: Task,
    problems: Sequence[Problem],
    decoder: Decoder,
    length: int,
    seed: int = 0,
    batch: int = 256,
) -> Tally:
    """Grades of problems under a decoder."""
    right: list[bool] = []
    every: list[list[bool]] = []
    rows = 0
    for start in range(0, len(problems), batch):
        part = problems[start : start + batch]
        prompts = [model.text.encode(model.text.chat(task.messages(problem))) for problem in part]
        canvas = Canvas.blank(
            prompts, length, model.denoiser.mask_id, device=model.denoiser.device, dtype=model.denoiser.dtype
        )
        for problem, decoded in zip(part, decode(decoder, model.denoiser, canvas, seed), strict=True):
            texts = [answer(model, ids) for ids in decoded.canvas.tokens[:, canvas.start :].tolist()]
            keys = [task.key(text) for text in texts] if len(texts) > 1 else texts
            grades = {text: task.grade(problem, text).right for text in set(texts)}
            every.append([grades[text] for text in texts])
            right.append(every[-1][choose(decoder.choice, decoded.score, keys)])
            rows += decoded.cost.rows
    return Tally(right, every, rows / len(problems))


def answer(model: Model, ids: list[int]) -> str:
    """The text up to the first token that ends it."""
    ends = [place for place, token in enumerate(ids) if token in model.eos]
    return model.text.decode(ids[: ends[0]] if ends else ids)
