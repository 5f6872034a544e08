"""Engines decode a run's jobs: in this process, or by workers on one or many machines."""

from __future__ import annotations

from collections.abc import Generator, Iterable

from unmask.errors import UnmaskError, nearest
from unmask.runs.worker import Batches, Done, Engine, Job, Worker

ENGINES = ("local", "ray")


class Local:
    """One worker in this process."""

    def __init__(self) -> None:
        self._worker = Worker()  # keeps its model from one run to the next

    def run(self, jobs: Iterable[Job], batches: Batches) -> Generator[tuple[Job, Done], None, None]:
        for job in jobs:
            start = 0
            while start < len(job.problems):
                part = job.part(start, start + batches.size(job.shape))
                done = self._worker.run(part)
                batches.saw(job.shape, len(part.problems), done.fitted, done.roomy, done.seconds)
                start += len(part.problems)
                yield part, done


def make_engine(name: str = "local", workers: int | None = None, address: str | None = None) -> Engine:
    if name not in ENGINES:
        raise UnmaskError(f"unknown engine {name!r}: {nearest(name, ENGINES)}")
    if name == "local":
        if workers is not None or address is not None:
            given = "--workers" if workers is not None else "--address"
            raise UnmaskError(f"{given} is for --engine ray: the local engine is this process alone")
        return Local()
    from unmask.runs.engines.ray import Ray  # an optional extra

    return Ray(workers, address)


__all__ = ["ENGINES", "Engine", "Local", "make_engine"]
