"""An evaluation: jobs go to an engine; this process alone grades the answers and writes the records."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import torch

from unmask import environment
from unmask.core import reseed
from unmask.errors import UnmaskError
from unmask.models.checkpoints.fingerprint import local_fingerprint
from unmask.runs.grid import Grid, digest_of
from unmask.runs.header import arithmetic
from unmask.runs.record import FORMAT, Counts, Measured, Name, Record, trace_file
from unmask.runs.store import Run, RunFolder, open_run, read_run
from unmask.runs.worker import Answer, Batches, Engine, Job, PosedProblem
from unmask.tasks import Problem, Task, task
from unmask.version import __version__

# Called with the records a run begins with, then with each batch of new ones; and with how many are done, of how many.
Watcher = Callable[[Sequence[Record], int, int], None]


def evaluate(
    grid: Grid,
    out: str | os.PathLike[str],
    engine: Engine,
    *,
    retry: bool = False,
    watch: Watcher | None = None,
    command: str = "",
) -> Run:
    """Do what the folder lacks; `retry` also does failed problems again. The folder notes the `command`."""
    evaluation = Evaluation(grid)
    begun = head(grid, evaluation.problems) | {"command": command, "cells": evaluation.planned}
    with open_run(out, begun, evaluation.ids, evaluation.digest) as folder:
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
                    folder.check(job.cell.model, result.checkpoint)
                    records = list(pool.map(evaluation.record, [job] * len(result.answers), result.answers))
                    _keep_traces(folder, records, result.answers)
                    folder.append(records)
                    count += len(records)
                    if watch:
                        watch(records, count, evaluation.total)
    return read_run(out)


class Evaluation:
    """A grid's problems: posed as jobs, and graded as records."""

    def __init__(self, grid: Grid):
        self.grid = grid
        self.problems = grid.problems()
        self._tasks: dict[str, Task] = {spec: task.make(spec) for spec in grid.tasks}
        self._grades: dict[tuple[str, str, str, str], dict[str, Any]] = {}  # decoders often agree to the letter
        self.ids = {spec: {problem.id: problem for problem in problems} for spec, problems in self.problems.items()}
        for spec, problems in self.problems.items():
            if len(self.ids[spec]) < len(problems):
                raise UnmaskError(f"task {spec!r} gives two problems the same id")

    @cached_property
    def planned(self) -> list[list[Any]]:
        """Every cell, and how many records it will have."""
        repeats = len(self.grid.seeds) * self.grid.samples
        return [[*cell, repeats * len(self.problems[cell.task])] for cell in self.grid.cells()]

    @cached_property
    def total(self) -> int:
        return sum(count for *_, count in self.planned)

    def digest(self, spec: str, count: int) -> dict[str, Any]:
        """Of the first problems of a task, as a folder notes it."""
        return digest_of(self._tasks[spec], self.problems[spec][:count])

    def jobs(self, done: set[Name]) -> Iterator[Job]:
        grid = self.grid
        for cell in grid.cells():
            source = self._tasks[cell.task]
            posed = [PosedProblem(each.id, tuple(source.messages(each))) for each in self.problems[cell.task]]
            for seed, sample in product(grid.seeds, range(grid.samples)):
                left = tuple(each for each in posed if Name(*cell, seed, sample, each.id) not in done)
                if left:
                    decoding = grid.decoding_of(cell, reseed(seed, sample))
                    yield Job(cell, seed, sample, decoding, grid.placement, grid.traces, left)

    def record(self, job: Job, answer: Answer) -> Record:
        grades: dict[str, Any] = {"answer": None, "key": None, "right": None, "score": None, "error": answer.error}
        if answer.error is None:
            graded = answer.marked if self.grid.metric == "d1" else None
            texts = (job.cell.task, answer.problem, answer.text, answer.text if graded is None else graded)
            if texts not in self._grades:
                self._grades[texts] = self._grade(*texts)
            grades |= self._grades[texts]
        return Record(
            **job.cell._asdict(),
            task_version=self._tasks[job.cell.task].version,
            seed=job.seed,
            sample=job.sample,
            problem=answer.problem,
            prompt=answer.prompt,
            text=answer.text,
            likelihood=answer.likelihood,
            cost=Counts(**answer.cost),
            measured=Measured(**answer.measured, time=_now()),
            **grades,
        )

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


def head(grid: Grid, problems: dict[str, list[Problem]]) -> dict[str, Any]:
    """The content of run.json for a run that begins now."""
    placement = grid.placement
    x86 = placement.device == "cpu" and platform.machine() in ("x86_64", "AMD64")
    exact = x86 and placement.dtype == "float32" and placement.precision == "highest"
    return {
        "format": FORMAT,
        "unmask": __version__,
        "created": _now(),
        "machine": {
            "platform": platform.platform(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "cores": os.cpu_count(),
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        },
        "deterministic": exact and environment.deterministic(),
        "arithmetic": arithmetic(),
        "spec": grid.spec(problems) | {"checkpoints": [local_fingerprint(name) for name in grid.models]},
    }


def _keep_traces(folder: RunFolder, records: Sequence[Record], answers: Sequence[Answer]) -> None:
    """Traces are written before their records, so that every record has its trace."""
    for record, answer in zip(records, answers, strict=True):
        if answer.trace is not None:
            folder.keep(Path(trace_file(record.name)), answer.trace)


def _now() -> str:
    """The wall clock may jump: nothing is computed from this."""
    return datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
