"""What an engine is asked and what it answers. Plain values only: specs and prompts travel, never objects."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

from unmask.runs.batching import Batches

Precision = Literal["highest", "high"]  # of float32 products: exact, or rounded to TF32 where the device can


@dataclass(frozen=True)
class Asked:
    """A problem on its way to a worker."""

    id: str
    messages: tuple[dict[str, str], ...]


@dataclass(frozen=True)
class Job:
    """Problems of one cell, seed and sample."""

    model: str
    task: str
    decoder: str
    length: int
    seed: int
    sample: int
    guidance: float
    suppress: bool
    early_end: bool
    cache: str
    stop: tuple[str, ...]
    traced: bool
    device: str
    dtype: str
    precision: Precision
    compiled: bool
    memory: int | None  # bytes that may be in use; as much as is free without it
    problems: tuple[Asked, ...]

    def part(self, start: int, stop: int) -> Job:
        return replace(self, problems=self.problems[start:stop])

    def plain(self) -> dict[str, Any]:
        """As it travels."""
        return asdict(self)

    @classmethod
    def of(cls, said: dict[str, Any]) -> Job:
        problems = tuple(Asked(one["id"], tuple(one["messages"])) for one in said["problems"])
        return cls(**{**said, "stop": tuple(said["stop"]), "problems": problems})

    @property
    def shape(self) -> tuple[str, str, int]:
        """What decides how many problems fit together."""
        return (self.model, self.decoder, self.length)


@dataclass(frozen=True)
class Answer:
    """What came of a problem, not graded yet."""

    problem: str
    prompt: str
    text: str
    likelihood: float | None
    cost: dict[str, int]
    measured: dict[str, Any]
    error: str | None = None
    trace: str | None = None  # the file's text, where one was asked for


@dataclass(frozen=True)
class Done:
    """What a worker says after a job."""

    answers: tuple[Answer, ...]  # in the job's order
    fitted: int  # problems that went through together
    roomy: bool  # whether twice as many would fit the memory
    seconds: float

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, said: dict[str, Any]) -> Done:
        return cls(**{**said, "answers": tuple(Answer(**one) for one in said["answers"])})


@runtime_checkable
class Engine(Protocol):
    def run(self, jobs: Iterable[Job], batches: Batches) -> Generator[tuple[Job, Done], None, None]:
        """Answers as they come, each job cut into batches. Closing the iterator ends the workers."""
        ...


def failure(problem: Asked, sentence: str, prompt: str = "", **measured: Any) -> Answer:
    nothing = {"rows": 0, "distinct": 0, "positions": 0}
    return Answer(problem.id, prompt, "", None, nothing, measured, error=sentence)
