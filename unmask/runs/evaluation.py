"""The evaluation line: jobs out to an engine, answers back, graded, and written by this process alone."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from unmask import environment
from unmask.errors import UnmaskError
from unmask.runs.batching import Batches
from unmask.runs.grid import Grid
from unmask.runs.job import Answer, Asked, Engine, Job
from unmask.runs.record import FORMAT, Cell, Measured, Name, Record, Work, trace_file
from unmask.runs.store import Run, Store, open_store, read_run
from unmask.tasks import Problem, Task, task
from unmask.version import __version__

# Shown the records a run begins with, then each batch of new ones, with how many records there will be in the end.
Watcher = Callable[[Sequence[Record], int], None]


def evaluate(
    grid: Grid,
    out: str | os.PathLike[str],
    engine: Engine,
    *,
    batch: int | None = None,
    memory: int | None = None,
    retry: bool = False,
    watch: Watcher | None = None,
) -> Run:
    """Do what the folder does not hold yet. `memory` is a budget in bytes, `retry` does failed problems again."""
    batches = Batches(batch)
    line = Line(grid)
    with open_store(out, head(grid, line.problems)) as store:
        done = {record.name for record in store.records if not (retry and record.error)}
        if watch:
            watch([record for record in store.records if record.name in done], line.total)
        jobs = list(line.jobs(done, memory))
        if jobs:
            if grid.traces:
                (store.folder / "traces").mkdir(exist_ok=True)
            with closing(engine.run(jobs, batches)) as results, ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                for job, result in results:
                    records = list(pool.map(line.record, [job] * len(result.answers), result.answers))
                    _keep_traces(store, records, result.answers)
                    store.append(records)
                    if watch:
                        watch(records, line.total)
    return read_run(out)


class Line:
    """A grid's problems, out and back."""

    def __init__(self, grid: Grid):
        self.grid = grid
        self.problems = grid.problems()
        self._tasks: dict[str, Task] = {spec: task.make(spec) for spec in grid.tasks}
        self._graded: dict[tuple[str, str, str], dict[str, Any]] = {}  # decoders often agree to the letter
        self._known = {spec: {problem.id: problem for problem in mine} for spec, mine in self.problems.items()}
        for spec, mine in self.problems.items():
            if len(self._known[spec]) < len(mine):
                raise UnmaskError(f"task {spec!r} names two problems alike")

    @cached_property
    def total(self) -> int:
        each = len(self.grid.seeds) * self.grid.samples
        return each * sum(len(self.problems[cell.task]) for cell in self.grid.cells())

    def jobs(self, done: set[Name], memory: int | None) -> Iterator[Job]:
        grid = self.grid
        for cell in grid.cells():
            asked = [(problem.id, self._ask(cell.task, problem)) for problem in self.problems[cell.task]]
            for seed in grid.seeds:
                for sample in range(grid.samples):
                    left = tuple(one for id_, one in asked if Name(*cell, seed, sample, id_) not in done)
                    if left:
                        yield self._job(cell, seed, sample, memory, left)

    def _ask(self, spec: str, problem: Problem) -> Asked:
        return Asked(problem.id, tuple(self._tasks[spec].messages(problem)))

    def _job(self, cell: Cell, seed: int, sample: int, memory: int | None, left: tuple[Asked, ...]) -> Job:
        grid = self.grid
        return Job(
            **cell._asdict(),
            seed=seed,
            sample=sample,
            guidance=grid.guidance,
            suppress=grid.suppress,
            early_end=grid.early_end,
            cache=grid.cache,
            stop=grid.stop,
            traced=grid.traces,
            device=grid.device,
            dtype=grid.dtype,
            precision=grid.precision,
            compiled=grid.compiled,
            memory=memory,
            problems=left,
        )

    def record(self, job: Job, answer: Answer) -> Record:
        made = self._tasks[job.task]
        said: dict[str, Any] = {"answer": None, "key": None, "right": None, "score": None, "error": answer.error}
        if answer.error is None:
            text = (job.task, answer.problem, answer.text)
            if text not in self._graded:
                self._graded[text] = self._grade(made, self._known[job.task][answer.problem], answer.text)
            said |= self._graded[text]
        return Record(
            model=job.model,
            task=job.task,
            task_version=made.version,
            decoder=job.decoder,
            length=job.length,
            seed=job.seed,
            sample=job.sample,
            problem=answer.problem,
            prompt=answer.prompt,
            text=answer.text,
            likelihood=answer.likelihood,
            cost=Work(**answer.cost),
            measured=Measured(**answer.measured, time=_now()),
            **said,
        )

    def _grade(self, made: Task, problem: Problem, text: str) -> dict[str, Any]:
        try:
            grade = made.grade(problem, text, self.grid.metric)
            key = made.key(text)
        except UnmaskError:  # the machine lacks something: no problem's fault
            raise
        except Exception as error:  # whatever a grader stumbles over in this one text
            return {"error": f"the grader failed on this text: {type(error).__name__} {error}"}
        return {"answer": grade.answer, "key": key, "right": grade.right, "score": float(grade.score)}


def head(grid: Grid, problems: dict[str, list[Problem]]) -> dict[str, Any]:
    """What run.json says of a run that begins now."""
    here = grid.device == "cpu" and platform.machine() in ("x86_64", "AMD64")
    exact = here and grid.dtype == "float32" and grid.precision == "highest"
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
        "spec": grid.spec(problems),
    }


def _keep_traces(store: Store, records: Sequence[Record], answers: Sequence[Answer]) -> None:
    """Before their records: a record that is there has its trace."""
    for record, answer in zip(records, answers, strict=True):
        if answer.trace is not None:
            store.keep(Path(trace_file(record.name)), answer.trace)


def _now() -> str:
    """The wall clock may jump: nothing is computed from this."""
    return datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
