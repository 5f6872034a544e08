"""The protocol of tasks: problems are posed as text, answers are read from text and graded."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

from unmask.errors import UnmaskError
from unmask.registry import Registry

if TYPE_CHECKING:
    from unmask.tasks.checkers import Check

Metric = Literal["ours", "d1"]
Split = Literal["train", "validation", "test"]


@dataclass(frozen=True)
class Problem:
    id: str  # name in records and in files to be graded, stable across versions of the data
    question: str  # question without system text and template
    gold: str  # an output that is right under `ours`; the worked solution in generated families
    data: Mapping[str, Any] = field(default_factory=dict)  # data for the grader: numbers, target, asserts, …


@dataclass(frozen=True)
class Grade:
    right: bool
    score: float  # 1 or 0, or a fraction if the task counts parts (cells of a Sudoku)
    answer: str | None  # answer as read from the output, if there is one
    note: str = ""  # reason if it is wrong, and whether a program ran without the full sandbox


@runtime_checkable
class Task(Protocol):
    """A frozen dataclass whose fields are its settings; `version` changes when a grade or a prompt can change.

    A task that runs programs also has `ready()`, which raises before the first problem if no program could be run.
    """

    version: ClassVar[int]

    @abstractmethod
    def problems(self) -> Iterable[Problem]:
        """Return all problems in a fixed order; generated families are endless."""

    @abstractmethod
    def messages(self, problem: Problem) -> list[dict[str, str]]:
        """Return the problem as chat messages; a trailing assistant message is a prefill."""

    @abstractmethod
    def answer(self, text: str, metric: Metric = "ours") -> str | None:
        """Return the answer in an output, not yet graded."""

    def key(self, text: str) -> str:
        """Return the key by which outputs vote together; the text itself if it has no answer."""
        answer = self.answer(text)
        return text if answer is None else answer

    @abstractmethod
    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade:
        """Grade an output."""

    def visible(self, messages: Sequence[Mapping[str, str]]) -> Check | None:
        """Return what an output can be checked for by its question alone, if there is anything.

        The messages are those that the model is shown, so the gold answer cannot influence a verdict.
        """
        del messages
        return None


task: Registry[Task] = Registry("task")


def question_in(messages: Sequence[Mapping[str, str]]) -> str:
    """Return the last message of the user, which poses the problem."""
    return next((str(message["content"]) for message in reversed(messages) if message["role"] == "user"), "")


def problems_of(source: Task) -> Iterable[Problem]:
    """Return the problems of a task, or raise if its file contains anything else."""
    try:
        return source.problems()
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        what = f"{type(error).__name__}: {error}"
        raise UnmaskError(f"the data of task {task.name(source)!r} cannot be read ({what})") from error


def configure(specs: Sequence[str], **options: Any) -> list[Task]:
    """Return the tasks of the specs, with each option set on the tasks that have it; None and False mean not given.

    An option that no task has is refused, and so is `prompts` unless every task has it.
    """
    tasks = [task.make(spec) for spec in specs]
    options = {key: value for key, value in options.items() if value not in (None, False)}
    for key in options:
        lacking = [spec for spec, each in zip(specs, tasks, strict=True) if key not in _settings(each)]
        if lacking and (key == "prompts" or len(lacking) == len(tasks)):
            raise UnmaskError(f"task {lacking[0]!r} has no setting for --{key.replace('_', '-')}: leave it out")
    return [task.make(each, **{key: options[key] for key in options.keys() & _settings(each)}) for each in tasks]


def _settings(each: Task) -> set[str]:
    return {field.name for field in fields(each)}  # type: ignore[arg-type]
