"""Workers on one or many machines, run by Ray: on an existing cluster, or on one started for the run.

Each actor is a worker that holds the model. It has one job at a time, so that its death
can be traced to a problem: the problems of a batch whose worker died are tried again one by one by other workers, and a
problem that killed two workers alone becomes a recorded failure.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from unmask import environment
from unmask.errors import UnmaskError, check_at_least
from unmask.runs.engine import Batches
from unmask.runs.header import difference
from unmask.runs.record import Cell, Measured
from unmask.runs.worker import Answer, Done, Job, Worker
from unmask.version import __version__

try:
    import ray
    from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError
except ImportError:
    raise UnmaskError("--engine ray needs Ray: pip install 'unmask[ray]'") from None

MAX_DEATHS = 2  # deaths of workers on one problem alone, after which it is left out
MAX_FAILED_STARTS = 5  # consecutive deaths of workers before their first job
PATIENCE = 900.0  # seconds without a worker or an answer before the cluster counts as gone


@dataclass
class WorkerPool:
    """The workers, and what each is doing."""

    new_actor: Any  # starts an actor
    busy: dict[Any, tuple[Any, Job | None]] = field(default_factory=dict)  # actor and job by the pending result
    idle: list[Any] = field(default_factory=list)
    failed_starts: int = 0
    exact: bool = True  # the workers must compute the same bits
    first: dict[str, Any] | None = None  # the facts of the first worker

    def start(self) -> None:
        """Start a worker and ask for its facts."""
        actor = self.new_actor()
        self.busy[actor.facts.remote()] = (actor, None)

    def give(self, job: Job) -> None:
        """Have an idle worker decode a job."""
        actor = self.idle.pop()
        self.busy[actor.run.remote(job)] = (actor, job)

    def end(self) -> None:
        """Kill all workers."""
        for actor in [*self.idle, *(actor for actor, _ in self.busy.values())]:
            _kill(actor)


class Ray:
    """Workers of a Ray cluster."""

    def __init__(self, workers: int | None = None, address: str | None = None):
        check_at_least(1, workers=workers)
        self.workers, self.address = workers, address

    def run(self, jobs: Iterable[Job], batches: Batches) -> Generator[tuple[Job, Done], None, None]:
        jobs = list(jobs)
        with cluster_of(self.address, self.workers):
            on_gpu = jobs[0].placement.device == "cuda"
            count = count_workers(self.workers, on_gpu)
            need: Any = {"num_gpus": 1} if on_gpu else {"num_cpus": 1}
            actor: Any = ray.remote(Worker).options(**need, max_restarts=0, max_task_retries=0)
            share = 1.0 if on_gpu else 1 / count  # cores share their machine's memory
            pool = WorkerPool(lambda: actor.remote(share), exact=not on_gpu)
            try:
                yield from _run(Queue(jobs, batches), pool, count)
            finally:
                pool.end()


class Queue:
    """The jobs left: first those whose worker died, then the rest in order."""

    def __init__(self, jobs: Iterable[Job], batches: Batches):
        self.batches = batches
        self._again: deque[Job] = deque()
        self._fresh = deque(jobs)
        self._deaths: Counter[tuple[Cell, int, int, str]] = Counter()  # by cell, seed, sample and problem

    def __len__(self) -> int:
        return len(self._again) + len(self._fresh)

    def next(self) -> Job:
        """Take as many problems as are to be decoded together."""
        if self._again:
            return self._again.popleft()
        job = self._fresh.popleft()
        size = self.batches.size(job)
        if size < len(job.problems):
            self._fresh.appendleft(job.part(size, len(job.problems)))
        return job.part(0, size)

    def died(self, job: Job) -> Done | None:
        """Queue its problems again, one by one, or return the failure of one that killed too many workers alone."""
        if len(job.problems) > 1:
            self._again += [job.part(place, place + 1) for place in range(len(job.problems))]
            return None
        problem = next(iter(job.problems))[0]
        name = (job.cell, job.seed, job.sample, problem)
        self._deaths[name] += 1
        if self._deaths[name] < MAX_DEATHS:
            self._again.append(job)
            return None
        sentence = f"the worker died {MAX_DEATHS} times on this problem alone: it was left out"
        return Done((Answer(job.record(problem, error=sentence, measured=Measured(batch=1))),), 1, False, 0.0)


def _run(queue: Queue, pool: WorkerPool, count: int) -> Iterator[tuple[Job, Done]]:
    """Keep the workers busy until the queue is empty, replacing those that die."""
    for _ in range(count):
        pool.start()
    while len(queue) or any(job for _, job in pool.busy.values()):
        while pool.idle and len(queue):
            pool.give(queue.next())
        ready, _ = ray.wait(list(pool.busy), num_returns=1, timeout=PATIENCE)
        if not ready:
            raise UnmaskError(f"no worker answered for {PATIENCE:.0f} s: is the cluster still up?")
        actor, job = pool.busy.pop(ready[0])
        try:
            done = ray.get(ready[0], timeout=PATIENCE)
        except (RayActorError, GetTimeoutError):
            _kill(actor)  # it may be alive and unreachable
            yield from _replace(queue, pool, job)
            continue
        except RayTaskError as error:
            raise error.cause if isinstance(error.cause, UnmaskError) else error from None
        pool.idle.append(actor)
        if job is None:
            pool.first = pool.first or done
            _check(done, pool.first if pool.exact else done)
            continue
        pool.failed_starts = 0
        queue.batches.update(job, done)
        yield job, done


def _replace(queue: Queue, pool: WorkerPool, job: Job | None) -> Iterator[tuple[Job, Done]]:
    """Start a worker in place of one that died on this job, or before its first."""
    if job is None:
        pool.failed_starts += 1
        if pool.failed_starts >= MAX_FAILED_STARTS:
            raise UnmaskError(f"{MAX_FAILED_STARTS} workers in a row died while starting: see the logs of Ray")
    elif failed := queue.died(job):
        yield job, failed
    pool.start()


def _kill(actor: Any) -> None:
    with contextlib.suppress(RayError):
        ray.kill(actor)


def _check(facts: dict[str, Any], first: dict[str, Any]) -> None:
    """Refuse a worker of a different version, or one whose sums could differ in the last bit."""
    if facts["unmask"] != __version__:
        worker, version = facts["name"], facts["unmask"]
        raise UnmaskError(f"worker {worker} has unmask {version}, this is {__version__}: install the same version")
    if environment.deterministic() and not facts["deterministic"]:
        raise UnmaskError(f"worker {facts['name']} loaded torch before unmask could fix the order of summation")
    change = difference(first["arithmetic"], facts["arithmetic"])
    if environment.deterministic() and change:
        raise UnmaskError(
            f"workers {first['name']} and {facts['name']} compute differently ({change}): "
            "set ATEN_CPU_CAPABILITY=avx2 and the same MKL_CBWR on every machine"
        )


@contextlib.contextmanager
def cluster_of(address: str | None, workers: int | None) -> Iterator[None]:
    """Join a cluster by its address, or start one here and stop it at the end; keep one that this process uses."""
    if ray.is_initialized():
        yield
        return
    _check_reachable(address)
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


def _check_reachable(address: str | None) -> None:
    """Refuse an address that nobody answers at, which Ray itself would try for minutes."""
    host, _, port = (address or "").rpartition(":")
    if "/" in host or not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise UnmaskError(f"no Ray cluster at {address!r}: {error}") from None


def count_workers(wanted: int | None, on_gpu: bool) -> int:
    """Return the number of workers, by default one per GPU or core; refuse more than the cluster has."""
    kind = "GPU" if on_gpu else "CPU"
    available = int(ray.cluster_resources().get(kind, 0))
    if wanted is not None and wanted > available:
        raise UnmaskError(f"{wanted} workers need {wanted} {kind}s, the cluster has {available}")
    if not available:
        raise UnmaskError(f"the cluster has no {kind} for a worker")
    return wanted or available
