"""What a task is: problems posed as text, answers read from text, grades. Nothing here knows a tensor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from unmask.errors import UnmaskError
from unmask.registry import Registry

Metric = Literal["ours", "d1"]
Split = Literal["train", "validation", "test"]


@dataclass(frozen=True)
class Problem:
    id: str  # stable across versions of the data; names the problem in records and in files to be graded
    question: str  # what is asked, without system text or template
    gold: str  # an answer that grades right under `ours`: for generated families the worked solution
    data: Mapping[str, Any] = field(default_factory=dict)  # what the grader needs: numbers, target, asserts …


@dataclass(frozen=True)
class Grade:
    right: bool
    score: float  # 1 or 0, or a share where the task counts parts (Sudoku's cells)
    answer: str | None  # what was read from the text; None where nothing could be
    note: str = ""  # why it is wrong, or with what rights a program ran


@runtime_checkable
class Task(Protocol):
    """A frozen dataclass whose fields are its settings; `version` changes when a grade or a prompt could.

    A task that runs programs also has `ready()`, which refuses before the first problem what each would be refused.
    """

    version: ClassVar[int]

    def problems(self) -> Iterable[Problem]:
        """All problems in a fixed order; endless for generated families."""
        ...

    def messages(self, problem: Problem) -> list[dict[str, str]]:
        """The problem as chat messages; a trailing assistant message is a prefill."""
        ...

    def answer(self, text: str, metric: Metric = "ours") -> str | None:
        """What an output says, read but not judged."""
        ...

    def key(self, text: str) -> str:
        """Outputs with one key vote together; the text itself where no answer can be read."""
        ...

    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade: ...


task: Registry[Task] = Registry("task")


def configure(specs: Sequence[str], **options: Any) -> list[Task]:
    """Tasks, with each option as a setting of those that have it; an option that no task has is refused.

    None and False count as not given. A wording (`prompts`) is for one format: every task has to have that setting.
    """
    tasks = [task.make(spec) for spec in specs]
    known = [{field.name for field in fields(each)} for each in tasks]  # type: ignore[arg-type]
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    for name in given:
        lacking = [spec for spec, names in zip(specs, known, strict=True) if name not in names]
        if len(lacking) == len(specs) or (lacking and name == "prompts"):
            raise UnmaskError(f"task {lacking[0]!r} has no setting for --{name.replace('_', '-')}: leave it out")
    return [
        task.make(each, **{name: value for name, value in given.items() if name in names})
        for each, names in zip(tasks, known, strict=True)
    ]
