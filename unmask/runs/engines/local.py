"""One worker in this process."""

from __future__ import annotations

from collections.abc import Generator, Iterable

from unmask.runs.batching import Batches
from unmask.runs.job import Done, Job
from unmask.runs.worker import Worker


class Local:
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
