"""An evaluation: an engine decodes jobs; this process alone grades the answers and writes the records."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Any

import torch

from unmask import environment
from unmask.core import reseed
from unmask.errors import UnmaskError
from unmask.models.checkpoints.fingerprint import local_fingerprint
from unmask.runs.engine import Batches, Engine
from unmask.runs.grid import Grid, digest_of
from unmask.runs.header import arithmetic
from unmask.runs.record import FORMAT, Name, Record, trace_file
from unmask.runs.store import Run, open_run, read_run
from unmask.runs.worker import Answer, Job, now
from unmask.tasks import Problem, Task, task
from unmask.version import __version__

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
    header = new_header(grid, evaluation.problems) | {"command": command, "cells": evaluation.planned}
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
        self.problems = grid.problems()
        self._tasks: dict[str, Task] = {spec: task.make(spec) for spec in grid.tasks}
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
        """Return the hash of the first `count` problems of a task, as a folder notes it."""
        return digest_of(self._tasks[spec], self.problems[spec][:count])

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


def new_header(grid: Grid, problems: dict[str, list[Problem]]) -> dict[str, Any]:
    """Return the content of run.json for a run that begins now."""
    placement = grid.placement
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
        "spec": grid.spec(problems) | {"checkpoints": [local_fingerprint(name) for name in grid.models]},
    }
