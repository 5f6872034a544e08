"""An evaluation: an engine decodes jobs; this process alone grades the answers and writes the records."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from itertools import islice, product
from pathlib import Path
from typing import Any

import torch

from unmask import environment
from unmask.core import reseed
from unmask.errors import UnmaskError
from unmask.models.checkpoints.fingerprint import local_fingerprint
from unmask.runs.engine import Batches, Engine
from unmask.runs.grid import Grid
from unmask.runs.header import arithmetic
from unmask.runs.record import FORMAT, Name, Record, trace_file
from unmask.runs.store import Run, open_run, read_run
from unmask.runs.worker import Answer, Job, now
from unmask.tasks import Problem, Task, grading, task
from unmask.tasks.published.benchmark import load_wording
from unmask.tasks.task import problems_of
from unmask.version import __version__

MOST_PROBLEMS = 1_000_000  # limit for a task without an end
# Called with the records a run begins with, then with each batch of new ones; and with the number done and the total.
RecordCallback = Callable[[Sequence[Record], int, int], None]


def evaluate(
    grid: Grid,
    out: str | os.PathLike[str],
    engine: Engine,
    *,
    retry: bool = False,
    watch: RecordCallback | None = None,
    command: str = "",
) -> Run:
    """Decode and grade what the folder lacks; with `retry` also the problems that failed. `command` is noted in it."""
    evaluation = Evaluation(grid)
    header = new_header(evaluation) | {"command": command, "cells": evaluation.planned}
    with open_run(out, header, evaluation.ids, evaluation.digest) as folder:
        done = {record.name for record in folder.records if not (retry and record.error)}
        count = len(done)
        if watch:
            watch([record for record in folder.records if record.name in done], count, evaluation.total)
        if jobs := list(evaluation.jobs(done)):
            if grid.traces:
                (folder.path / "traces").mkdir(exist_ok=True)
            results = engine.run(jobs, Batches(grid.placement.batch))
            with closing(results), ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                for job, result in results:
                    folder.check_checkpoint(job.cell.model, result.checkpoint)
                    records = list(pool.map(evaluation.graded, result.answers))
                    for record, answer in zip(records, result.answers, strict=True):
                        if answer.trace is not None:  # written before its record, so that every record has its trace
                            folder.write(trace_file(record.name), answer.trace)
                    folder.append(records)
                    count += len(records)
                    if watch:
                        watch(records, count, evaluation.total)
    return read_run(out)


class Evaluation:
    """The problems of a grid, as jobs and as graded records."""

    def __init__(self, grid: Grid):
        self.grid = grid
        self._tasks: dict[str, Task] = {spec: task.make(spec) for spec in grid.tasks}
        self.problems = {spec: _problems(spec, source, grid.limit) for spec, source in self._tasks.items()}
        self._grades: dict[tuple[str, str, str, str], dict[str, Any]] = {}  # decoders often write the same text
        self.ids = {spec: {problem.id: problem for problem in problems} for spec, problems in self.problems.items()}
        for spec, problems in self.problems.items():
            if len(self.ids[spec]) < len(problems):
                raise UnmaskError(f"task {spec!r} has two problems with the same id")

    @cached_property
    def planned(self) -> list[list[Any]]:
        """Every cell, and the number of records it will have."""
        repeats = len(self.grid.seeds) * self.grid.samples
        return [[*cell, repeats * len(self.problems[cell.task])] for cell in self.grid.cells]

    @cached_property
    def total(self) -> int:
        """The number of records of the whole run."""
        return sum(count for *_, count in self.planned)

    def digest(self, spec: str, count: int) -> dict[str, Any]:
        """Return a hash of a task's first problems as the model reads them, so that changed data is a changed run."""
        problems, source = self.problems[spec][:count], self._tasks[spec]
        posed = json.dumps([[problem.id, source.messages(problem)] for problem in problems])
        return {"count": len(problems), "digest": blake2b(posed.encode(), digest_size=8).hexdigest()}

    def spec(self) -> dict[str, Any]:
        """Return the settings of the run, with what it reads of tasks and checkpoints."""
        by_task: dict[str, list[Any]] = {
            "task_versions": [source.version for source in self._tasks.values()],
            "prompts": [_wording(source) for source in self._tasks.values()],
            "problems": [self.digest(spec, len(problems)) for spec, problems in self.problems.items()],
        }
        return self.grid.spec(by_task) | {"checkpoints": [local_fingerprint(name) for name in self.grid.models]}

    def jobs(self, done: set[Name]) -> Iterator[Job]:
        """Yield jobs for the problems whose records are not done."""
        grid = self.grid
        for cell in grid.cells:
            source = self._tasks[cell.task]
            prompts = [(problem.id, source.messages(problem)) for problem in self.problems[cell.task]]
            for seed, sample in product(grid.seeds, range(grid.samples)):
                left = tuple(each for each in prompts if Name(*cell, seed, sample, each[0]) not in done)
                if left:
                    decoding = grid.decoding_of(cell, reseed(seed, sample))
                    yield Job(cell, seed, sample, decoding, grid.placement, grid.traces, left)

    def graded(self, answer: Answer) -> Record:
        """Return the answer's record with its grade."""
        record = answer.record
        if record.error is not None:
            return record
        texts = (record.task, record.problem, record.text, answer.uncut if self.grid.metric == "d1" else record.text)
        if texts not in self._grades:
            self._grades[texts] = self._grade(*texts)
        return replace(record, **self._grades[texts])

    def _grade(self, spec: str, problem: str, text: str, graded: str) -> dict[str, Any]:
        source = self._tasks[spec]
        try:
            grade = source.grade(self.ids[spec][problem], graded, self.grid.metric)
            key = source.key(text)
        except UnmaskError:  # the machine lacks something, whatever the problem
            raise
        except Exception as error:  # a grader may trip over any text
            return {"error": f"the grader failed on this text: {type(error).__name__} {error}"}
        return {"answer": grade.answer, "key": key, "right": grade.right, "score": float(grade.score)}


def new_header(evaluation: Evaluation) -> dict[str, Any]:
    """Return the content of run.json for a run that begins now."""
    placement = evaluation.grid.placement
    x86 = placement.device == "cpu" and platform.machine() in ("x86_64", "AMD64")
    exact = x86 and placement.dtype == "float32" and placement.precision == "highest"
    return {
        "format": FORMAT,
        "unmask": __version__,
        "created": now(),
        "machine": {
            "platform": platform.platform(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "cores": os.cpu_count(),
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        },
        "deterministic": exact and environment.deterministic(),
        "arithmetic": arithmetic(),
        "spec": evaluation.spec(),
    }


def _wording(source: Task) -> Any:
    """Return the prompts that a task reads from a file, so that a changed file is a changed run."""
    path = getattr(source, "prompts", None)
    if not path:
        return None
    load_wording(path, task.name(source))  # refuses a file that is not one
    return json.loads(Path(path).read_text(encoding="utf-8"))


def _problems(spec: str, source: Task, limit: int | None) -> list[Problem]:
    """Return the problems of a task; one that would refuse every problem, or has no end, is refused."""
    grading.ready(source)
    every = problems_of(source)
    if not isinstance(every, Sequence):
        if limit is None:
            raise UnmaskError(f"task {spec!r} has no end: say how many problems with --limit")
        if limit > MOST_PROBLEMS:
            raise UnmaskError(f"limit must be at most {MOST_PROBLEMS} for task {spec!r}, got {limit}")
    problems = list(islice(every, limit))
    if not problems:
        raise UnmaskError(f"task {spec!r} has no problems")
    return problems
