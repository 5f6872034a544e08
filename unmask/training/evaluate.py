"""Decoding accuracy of a model on the problems of a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unmask.core import Decoder
from unmask.models import Model
from unmask.runs.decoding import Decoding
from unmask.runs.generation import Generation
from unmask.runs.prompt import read_prompt
from unmask.tasks import Problem, Task


@dataclass(frozen=True)
class Tally:
    right: list[bool]  # whether the chosen row of each problem is right
    every: list[list[bool]]  # whether each of its final rows is right
    rows: float  # per problem

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
    generation = Generation(model, Decoding(decoder, length, seed), key=task.key)
    prompts = [read_prompt(model, task.messages(problem), length) for problem in problems]
    outputs = [
        output
        for start in range(0, len(prompts), batch)
        for output in generation.outputs(prompts[start : start + batch])
    ]
    right: list[bool] = []
    every: list[list[bool]] = []
    for problem, output in zip(problems, outputs, strict=True):
        grades = {text: task.grade(problem, text).right for text in {row.text for row in output.rows}}
        every.append([grades[row.text] for row in output.rows])
        right.append(grades[output.text])
    return Tally(right, every, sum(output.cost.rows for output in outputs) / len(problems))
