"""What an engine is given and what it returns. Only plain values travel: specs and prompts, never objects."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, runtime_checkable

from unmask.runs.batching import Batches
from unmask.runs.decoding import Decoding
from unmask.runs.placement import Placement
from unmask.runs.record import Cell


@dataclass(frozen=True)
class PosedProblem:
    """A problem as a worker sees it."""

    id: str
    messages: tuple[dict[str, str], ...]


@dataclass(frozen=True)
class Job:
    """Problems of one cell, seed and sample."""

    cell: Cell
    seed: int  # of the run
    sample: int
    decoding: Decoding  # with the sample's own seed
    placement: Placement
    traced: bool
    problems: tuple[PosedProblem, ...]

    def part(self, start: int, stop: int) -> Job:
        return replace(self, problems=self.problems[start:stop])

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"cell": list(self.cell), "decoding": self.decoding.to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Job:
        problems = tuple(PosedProblem(each["id"], tuple(each["messages"])) for each in values["problems"])
        decoding, placement = Decoding.from_dict(values["decoding"]), Placement(**values["placement"])
        parts = {"cell": Cell(*values["cell"]), "decoding": decoding, "placement": placement, "problems": problems}
        return cls(**values | parts)

    @property
    def shape(self) -> tuple[str, str, int]:
        """What decides how many problems fit together."""
        return (self.cell.model, self.cell.decoder, self.cell.length)


@dataclass(frozen=True)
class Answer:
    """The answer to a problem, not graded yet."""

    problem: str
    prompt: str
    text: str
    likelihood: float | None
    cost: dict[str, int]
    measured: dict[str, Any]
    error: str | None = None
    trace: str | None = None  # the file's text, if requested
    marked: str | None = None  # the text uncut, special tokens written out, as `d1` reads it


@dataclass(frozen=True)
class Done:
    """The result of a job."""

    answers: tuple[Answer, ...]  # in the job's order
    fitted: int  # problems that went through together
    roomy: bool  # whether twice as many would fit the memory
    seconds: float
    checkpoint: dict[str, Any] | None = None  # the digest of the model that answered

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Done:
        return cls(**{**values, "answers": tuple(Answer(**answer) for answer in values["answers"])})


@runtime_checkable
class Engine(Protocol):
    def run(self, jobs: Iterable[Job], batches: Batches) -> Generator[tuple[Job, Done], None, None]:
        """Results as they come, each job cut into batches. Closing the iterator ends the workers."""
        ...


def failure(problem: PosedProblem, sentence: str, prompt: str = "", **measured: Any) -> Answer:
    return Answer(problem.id, prompt, "", None, {}, measured, error=sentence)
