"""Workers on one or many machines, by Ray: a cluster that is there, or one started here for the run.

Each actor holds the model; jobs and answers cross as plain values. One job is with a worker at a time, so that a death
can be laid at a problem's door: the problems of a batch that died are tried again one by one elsewhere, and one that
twice died alone becomes a recorded failure.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from unmask import environment
from unmask.errors import UnmaskError
from unmask.runs.batching import Batches
from unmask.runs.job import Done, Job, failure
from unmask.runs.worker import Worker
from unmask.version import __version__

try:
    import ray
    from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError
except ImportError:
    raise UnmaskError("--engine ray needs Ray: pip install 'unmask[ray]'") from None

DEATHS = 2  # alone, after which a problem is left out
STILLBORN = 5  # workers in a row that died before their first job
PATIENCE = 900.0  # seconds without a worker or an answer before the cluster counts as gone


class Actor(Worker):
    """A worker that is spoken to in plain values."""

    def work(self, said: dict[str, Any]) -> dict[str, Any]:
        return self.run(Job.of(said)).plain()


@dataclass
class Hands:
    """The workers, and what each is about."""

    make: Any  # starts an actor
    busy: dict[Any, tuple[Any, Job | None]] = field(default_factory=dict)  # by the answer that is awaited
    idle: list[Any] = field(default_factory=list)
    stillborn: int = 0

    def hire(self) -> None:
        actor = self.make()
        self.busy[actor.facts.remote()] = (actor, None)

    def give(self, job: Job) -> None:
        actor = self.idle.pop()
        self.busy[actor.work.remote(job.plain())] = (actor, job)

    def end(self) -> None:
        for actor in [*self.idle, *(actor for actor, _ in self.busy.values())]:
            with contextlib.suppress(RayError):
                ray.kill(actor)


class Ray:
    def __init__(self, workers: int | None = None, address: str | None = None):
        if workers is not None and workers < 1:
            raise UnmaskError(f"workers={workers} does not work: choose 1 or more")
        self.workers, self.address = workers, address

    def run(self, jobs: Iterable[Job], batches: Batches) -> Generator[tuple[Job, Done], None, None]:
        jobs = list(jobs)
        with _cluster(self.address, self.workers):
            on_gpu = jobs[0].device == "cuda"
            count = _count(self.workers, on_gpu)
            need: Any = {"num_gpus": 1} if on_gpu else {"num_cpus": 1}
            made: Any = ray.remote(Actor).options(**need, max_restarts=0, max_task_retries=0)
            hands = Hands(lambda: made.remote(1.0 if on_gpu else 1 / count))  # cores share their machine's memory
            try:
                yield from _run(Queue(jobs, batches), hands, count)
            finally:
                hands.end()


class Queue:
    """What is still to be done: what died first, then the rest in order."""

    def __init__(self, jobs: Iterable[Job], batches: Batches):
        self.batches = batches
        self._again: deque[Job] = deque()
        self._fresh = deque(jobs)
        self._deaths: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._again) + len(self._fresh)

    def next(self) -> Job:
        if self._again:
            return self._again.popleft()
        job = self._fresh.popleft()
        size = self.batches.size(job.shape)
        if size < len(job.problems):
            self._fresh.appendleft(job.part(size, len(job.problems)))
        return job.part(0, size)

    def back(self, job: Job) -> None:
        """Nobody's fault: as it was."""
        self._again.append(job)

    def died(self, job: Job) -> Done | None:
        """Its problems go again one by one; of one that died alone too often, its failure."""
        if len(job.problems) > 1:
            self._again += [job.part(place, place + 1) for place in range(len(job.problems))]
            return None
        problem = next(iter(job.problems))
        name = (job.model, job.task, job.decoder, job.length, job.seed, job.sample, problem.id)
        self._deaths[name] = self._deaths.get(name, 0) + 1
        if self._deaths[name] < DEATHS:
            self._again.append(job)
            return None
        sentence = f"the worker died {DEATHS} times on this problem alone: it was left out"
        return Done((failure(problem, sentence, batch=1),), 1, False, 0.0)


def _run(queue: Queue, hands: Hands, count: int) -> Iterator[tuple[Job, Done]]:
    for _ in range(count):
        hands.hire()
    while len(queue) or any(job for _, job in hands.busy.values()):
        while hands.idle and len(queue):
            hands.give(queue.next())
        came, _ = ray.wait(list(hands.busy), num_returns=1, timeout=PATIENCE)
        if not came:
            raise UnmaskError(f"no worker answered for {PATIENCE:.0f} s: is the cluster still there?")
        actor, job = hands.busy.pop(came[0])
        try:
            said = ray.get(came[0], timeout=PATIENCE)
        except (RayActorError, GetTimeoutError):
            _bury(actor)
            yield from _mourn(queue, hands, job)
            continue
        except RayTaskError as error:
            raise error.cause if isinstance(error.cause, UnmaskError) else error from None
        hands.idle.append(actor)
        if job is None:
            _check(said)
            continue
        hands.stillborn = 0
        done = Done.of(said)
        queue.batches.saw(job.shape, len(job.problems), done.fitted, done.roomy, done.seconds)
        yield job, done


def _mourn(queue: Queue, hands: Hands, job: Job | None) -> Iterator[tuple[Job, Done]]:
    if job is None:
        hands.stillborn += 1
        if hands.stillborn >= STILLBORN:
            raise UnmaskError(f"{STILLBORN} workers in a row died while starting: see the logs of Ray")
    else:
        failed = queue.died(job)
        if failed:
            yield job, failed
    hands.hire()


def _bury(actor: Any) -> None:
    """What cannot be reached might still live."""
    with contextlib.suppress(RayError):
        ray.kill(actor)


def _check(facts: dict[str, Any]) -> None:
    if facts["unmask"] != __version__:
        raise UnmaskError(f"worker {facts['name']} has unmask {facts['unmask']}, this is {__version__}: install one")
    if environment.deterministic() and not facts["deterministic"]:
        raise UnmaskError(f"worker {facts['name']} loaded torch before unmask could ask for one order of summation")


@contextlib.contextmanager
def _cluster(address: str | None, workers: int | None) -> Iterator[None]:
    """Joined by address, or started here and ended with the run; one this process already has is left alone."""
    if ray.is_initialized():
        yield
        return
    _knock(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    here: dict[str, Any] = {"num_cpus": max(workers or 0, os.cpu_count() or 1), "include_dashboard": False}
    try:
        ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **({} if address else here))
    except (ConnectionError, RuntimeError, ValueError, RayError) as error:
        where = f"at {address!r}" if address else "here"
        raise UnmaskError(f"no Ray cluster {where}: {str(error).splitlines()[0]}") from None
    try:
        yield
    finally:
        ray.shutdown()


def _knock(address: str | None) -> None:
    """Ray itself tries for minutes to reach what nobody answers at."""
    host, _, port = (address or "").rpartition(":")
    if "/" in host or not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise UnmaskError(f"no Ray cluster at {address!r}: {error}") from None


def _count(wanted: int | None, on_gpu: bool) -> int:
    kind = "GPU" if on_gpu else "CPU"
    there = int(ray.cluster_resources().get(kind, 0))
    if wanted is not None and wanted > there:
        raise UnmaskError(f"{wanted} workers need {wanted} {kind}s, the cluster has {there}")
    if not there:
        raise UnmaskError(f"the cluster has no {kind} for a worker")
    return wanted or there
