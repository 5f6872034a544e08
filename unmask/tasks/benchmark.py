"""What the published benchmarks share: a fixed list of problems, a replaceable wording, votes by answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unmask.tasks import prompts
from unmask.tasks.task import Grade, Problem, Task


@dataclass(frozen=True)
class Benchmark(Task):
    version: ClassVar[int] = 1
    wording: ClassVar[prompts.Wording]

    prompts: str | None = None  # a JSON file with another wording

    def messages(self, problem: Problem) -> list[dict[str, str]]:
        wording = prompts.load(self.prompts) if self.prompts else self.wording
        return wording.messages({**problem.data, "question": problem.question})


def grade_of(right: bool, answer: str | None, note: str = "another answer") -> Grade:
    """A grade without partial credit."""
    if answer is None:
        note = "no answer"
    return Grade(right, float(right), answer, "" if right else note)
