"""Grades outputs of other tools: JSON lines of `{"id" or "question", "output"}`, in any order, for any problems."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from unmask.errors import UnmaskError, nearest
from unmask.tasks.task import Grade, Metric, Problem, Task, problems_of

ENDLESS = 20_000  # largest number of problems of a generated family that are searched
PATIENCE = 2_000  # problems that are searched after the last match


@dataclass(frozen=True)
class Submission:
    line: int
    key: tuple[str, str]  # "id" or "question", and its text
    text: str


@dataclass(frozen=True)
class Scores:
    problems: list[Problem]
    grades: list[Grade]

    @property
    def right(self) -> int:
        return sum(grade.right for grade in self.grades)

    @property
    def accuracy(self) -> float:
        """Return the mean score in percent."""
        return 100 * sum(grade.score for grade in self.grades) / len(self.grades)

    def results(self) -> list[dict[str, Any]]:
        return [{"id": problem.id, **asdict(grade)} for problem, grade in zip(self.problems, self.grades, strict=True)]


def grade(
    task: Task,
    lines: Iterable[str],
    metric: Metric = "ours",
    progress: Callable[[int, int], None] | None = None,
) -> Scores:
    """Grade every line and return the grades in the order of the lines."""
    outputs = read(lines)
    ready(task)
    problems = match(task, outputs)
    grades: list[Grade] = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        texts = [output.text for output in outputs]
        for result in pool.map(lambda problem, text: task.grade(problem, text, metric), problems, texts):
            grades.append(result)
            if progress is not None:
                progress(len(grades), len(problems))
    return Scores(problems, grades)


def ready(task: Task) -> None:
    """Raise, before any work is done, if the task cannot grade here."""
    check = getattr(task, "ready", None)
    if check is not None:
        check()


def read(lines: Iterable[str]) -> list[Submission]:
    outputs = [_output(line, number) for number, line in enumerate(lines, 1) if line.strip()]
    if not outputs:
        raise UnmaskError('there is nothing to grade: each line must be {"id" or "question": …, "output": …}')
    return outputs


def _output(line: str, number: int) -> Submission:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        raise UnmaskError(f"line {number} is not JSON: {line.strip()[:60]!r}") from None
    if not isinstance(entry, dict) or not isinstance(entry.get("output"), str):
        raise UnmaskError(f'line {number} has no text under "output"')
    by = "id" if "id" in entry else "question"
    name = entry.get(by)
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(name, str):
        raise UnmaskError(f'line {number} names no problem: "id" or "question" must be a text')
    return Submission(number, (by, name if by == "id" else _plain(name)), entry["output"])


def match(task: Task, outputs: Sequence[Submission]) -> list[Problem]:
    """Return the problem that each output answers."""
    known = _index(task, outputs)
    lines: dict[str, int] = {}
    problems: list[Problem] = []
    for output in outputs:
        matches = known.get(output.key, [])
        if not matches:
            raise UnmaskError(_unknown(output, known, not isinstance(problems_of(task), Sequence)))
        if len(matches) > 1:
            ids = " and ".join(problem.id for problem in matches)
            raise UnmaskError(f"line {output.line}: this question belongs to {ids}: use the id instead")
        first = lines.setdefault(matches[0].id, output.line)
        if first != output.line:
            raise UnmaskError(f"line {output.line} answers {matches[0].id} again, after line {first}")
        problems.append(matches[0])
    return problems


Index = dict[tuple[str, str], list[Problem]]


def _index(task: Task, outputs: Sequence[Submission]) -> Index:
    """Return problems by id and by question; an endless family is searched while problems of the outputs are found."""
    problems = problems_of(task)
    finite = isinstance(problems, Sequence)
    missing = {output.key for output in outputs}
    known: Index = {}
    wanted, last = len(missing), 0
    for place, problem in enumerate(problems if finite else islice(problems, ENDLESS), 1):
        for key in (("id", problem.id), ("question", _plain(problem.question))):
            same = known.setdefault(key, [])
            if all(other.id != problem.id for other in same):
                same.append(problem)
            if key in missing:
                missing.remove(key)
                last = place
        spacing = last / max(1, wanted - len(missing))
        if not finite and (not missing or place > last + PATIENCE + 10 * spacing):
            break
    return known


def _unknown(output: Submission, known: Index, endless: bool) -> str:
    kind, name = output.key
    if kind == "question":
        return f"line {output.line}: this task has no problem that asks {name[:60]!r}"
    ids = [problem_id for kind, problem_id in known if kind == "id"]
    hint = nearest(name, ids) if len(ids) < 2000 else ""
    hint = hint if hint.startswith("did you") else f"ids look like {ids[0]!r}"
    hint += "; the settings of the task choose its problems" if endless else ""
    return f"line {output.line}: this task has no problem {name[:60]!r}: {hint}"


def _plain(question: str) -> str:
    """Return a question in the form in which it is compared, without regard to white space."""
    return " ".join(question.split())
