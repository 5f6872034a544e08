"""Engines decode a run's jobs: in this process, or by workers on one or many machines. Batches grow while that pays.

Results do not depend on how many problems are decoded together; time and memory do.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from unmask.errors import UnmaskError, check_known
from unmask.runs.worker import Done, Job, Worker

ENGINES = ("local", "ray")
FIRST, MOST = 4, 256  # problems of the first batch, and of the largest
QUICKER = 0.95  # a doubled batch pays if it brings the time per problem down to this share


@runtime_checkable
class Engine(Protocol):
    """Decodes jobs."""

    def run(self, jobs: Iterable[Job], batches: Batches) -> Generator[tuple[Job, Done], None, None]:
        """Yield results as they come, each job cut into batches. Closing the iterator ends the workers."""
        ...


@dataclass
class BatchSize:
    """The batch size of jobs of one shape."""

    size: int
    most: int = MOST
    pace: float | None = None  # seconds per problem at half this size


class Batches:
    """Batch sizes by a job's shape: start small, double while that pays, never return to a size that did not fit."""

    def __init__(self, fixed: int | None = None):
        self.fixed = fixed
        self._sizes: dict[tuple[str, str, int], BatchSize] = {}

    def size(self, job: Job) -> int:
        """Return how many of the job's problems to decode together."""
        return self._sizes.setdefault(job.shape, BatchSize(self.fixed or FIRST)).size

    def update(self, job: Job, done: Done) -> None:
        """Adapt the size to the result of a batch."""
        now, tried = self._sizes[job.shape], len(job.problems)
        if done.fitted < tried:
            now.size = now.most = min(now.most, done.fitted)
        elif self.fixed is None and tried == now.size < now.most:
            pace = done.seconds / tried
            if now.pace is not None and pace > QUICKER * now.pace:
                now.most = now.size  # the last doubling did not pay, so the next would not
            elif done.fits_double:
                now.pace, now.size = pace, min(2 * now.size, now.most)


class Local:
    """One worker in this process."""

    def __init__(self) -> None:
        self._worker = Worker()  # keeps its model from one run to the next

    def run(self, jobs: Iterable[Job], batches: Batches) -> Generator[tuple[Job, Done], None, None]:
        for job in jobs:
            start = 0
            while start < len(job.problems):
                part = job.part(start, start + batches.size(job))
                done = self._worker.run(part)
                batches.update(part, done)
                start += len(part.problems)
                yield part, done


def make_engine(name: str = "local", workers: int | None = None, address: str | None = None) -> Engine:
    """Return an engine by name; `workers` and the `address` of a cluster are for Ray."""
    check_known(ENGINES, engine=name)
    if name == "local":
        if workers is not None or address is not None:
            given = "--workers" if workers is not None else "--address"
            raise UnmaskError(f"{given} is for --engine ray: the local engine is this process alone")
        return Local()
    from unmask.runs.ray_engine import Ray  # an optional extra

    return Ray(workers, address)
