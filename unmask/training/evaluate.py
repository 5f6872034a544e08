"""Decoding accuracy of a model on problems of a task: the number that matters while training."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from unmask.core import Canvas, Decoder, decode
from unmask.models import Model
from unmask.policies.choice import choose
from unmask.tasks import Task


@dataclass(frozen=True)
class Tally:
    right: list[bool]  # a problem each
    rows: float  # a problem

    @property
    def accuracy(self) -> float:
        return sum(self.right) / len(self.right)


def tally(
    model: Model, task: Task, decoder: Decoder, length: int, problems: int, seed: int = 0, batch: int = 256
) -> Tally:
    """Grades of the first problems of a task under a decoder."""
    chosen = list(islice(task.problems(), problems))
    right: list[bool] = []
    rows = 0
    for start in range(0, len(chosen), batch):
        part = chosen[start : start + batch]
        prompts = [model.text.encode(model.text.chat(task.messages(problem))) for problem in part]
        canvas = Canvas.blank(
            prompts, length, model.denoiser.mask_id, device=model.denoiser.device, dtype=model.denoiser.dtype
        )
        for problem, decoded in zip(part, decode(decoder, model.denoiser, canvas, seed), strict=True):
            texts = [answer(model, ids) for ids in decoded.canvas.tokens[:, canvas.start :].tolist()]
            best = choose(decoder.choice, decoded.score, [task.key(text) for text in texts])
            right.append(task.grade(problem, texts[best]).right)
            rows += decoded.cost.rows
    return Tally(right, rows / len(chosen))


def answer(model: Model, ids: list[int]) -> str:
    """The text up to the first token that ends it."""
    ends = [place for place, token in enumerate(ids) if token in model.eos]
    return model.text.decode(ids[: ends[0]] if ends else ids)
