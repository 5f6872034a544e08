"""The loop of the server: admit requests into batches, run a forward pass, continue the decoders that waited for it.

Every batch runs the code of `unmask generate` in a coroutine that stops whenever its decoder needs the network
(`Batch.forward`). `Scheduler.step` takes the forward passes that have waited longest, as many as fit, runs them as one
and resumes their batches. So a request begins within a few steps whatever else is decoded, and a decoder needs to know
nothing of other requests.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

import torch

from unmask.core import Beliefs
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.runs.generation import out_of_memory
from unmask.serve.batch import Batch, Forward, batch_key, concatenate, run_together
from unmask.serve.queue import PendingRequest, Replica, RequestQueue
from unmask.serve.request import ClosingError, RequestLimits, TooLargeError

ENOUGH = 8  # a group is admitted once it has 1/8 as many requests as are being decoded with its key
PATIENCE = 8  # forward passes that a group waits at most

OnForward = Callable[[int, int], None]  # called with the rows and the requests of every forward pass
log = logging.getLogger("unmask.serve")


class Scheduler:
    """Decodes requests with one model, many at a time."""

    def __init__(self, model: Model, max_batch: int, on_forward: OnForward = lambda rows, requests: None):
        self.model, self.max_batch, self.on_forward = model, max_batch, on_forward
        self.broken = False  # the device failed and cannot be used any more by this process
        self.running = 0  # requests being decoded or about to be; written once per step, since other threads read it
        self._admission = Admission(model)
        self._waiting: deque[Batch] = deque()  # batches with a forward pass, the one that has waited longest first

    def add(self, requests: Iterable[PendingRequest]) -> None:
        self._admission.add(requests)
        self._count()

    def step(self) -> None:
        """Admit requests, run one forward pass, and continue the decoders that waited for it."""
        self._remove_cancelled()
        for batch in self._admit():
            self._resume(batch)
        if self._waiting:
            batches = self._next_batches()
            results = self._run([batch.forward for batch in batches if batch.forward is not None])
            for batch, result in zip(batches, results, strict=True):
                self._resume(batch, result)
            self._admission.count_forward()
        self._count()

    def stop(self, error: Exception) -> None:
        """End every request with an error."""
        for batch in self._waiting:
            batch.stop()
        waiting = (requests for _, requests in self._admission.take({}))
        for pending in chain(*waiting, *(batch.requests for batch in self._waiting)):
            pending.post(error)
        self._waiting.clear()
        self._count()

    def _count(self) -> None:
        self.running = len(self._admission) + sum(map(len, self._waiting))

    def _remove_cancelled(self) -> None:
        for batch in [batch for batch in self._waiting if batch.find_cancelled()]:
            self._waiting.remove(batch)
            if batch.active:
                self._resume(batch)
            else:
                batch.stop()

    def _admit(self) -> Iterator[Batch]:
        decoded = Counter[Hashable]()
        for batch in self._waiting:
            decoded[batch.key] += len(batch)
        for key, requests in self._admission.take(decoded):
            for first in range(0, len(requests), self.max_batch):
                yield Batch(self.model, key, requests[first : first + self.max_batch], lambda: self.max_batch)

    def _next_batches(self) -> list[Batch]:
        """Take the batch that has waited longest, and others whose forward passes join its own and fit beside it."""
        taken, others = [self._waiting.popleft()], deque[Batch]()
        first = taken[0].forward
        assert first is not None
        rows = len(first)
        for batch in self._waiting:
            forward = batch.forward
            assert forward is not None
            if rows + len(forward) <= self.max_batch and first.joins(forward):
                taken.append(batch)
                rows += len(forward)
            else:
                others.append(batch)
        self._waiting = others
        return taken

    def _run(self, forwards: Sequence[Forward]) -> list[Beliefs | Exception]:
        """Return the result of each forward pass, or its error.

        Where the memory is too small, the forward passes are halved, and later ones have no more rows than a half.
        """
        rows = sum(map(len, forwards))
        try:
            results = run_together(forwards)
            self.on_forward(rows, sum(forward.requests for forward in forwards))
            return [*results]
        except Exception as error:
            full, failure = out_of_memory(error), error.with_traceback(None)  # a traceback would hold the tensors
        if full:
            torch.cuda.empty_cache()
            self.max_batch = max(1, min(self.max_batch, rows // 2))
            log.warning("out of memory: forward passes have at most %d rows from now on", self.max_batch)
        if len(forwards) > 1:
            half = (len(forwards) + 1) // 2
            return [*self._run(forwards[:half]), *self._run(forwards[half:])]
        parts = forwards[0].split(max(1, rows // 2))
        return [self._run_parts(parts) if full and len(parts) > 1 else failure]

    def _run_parts(self, parts: Sequence[Forward]) -> Beliefs | Exception:
        results = [self._run([part])[0] for part in parts]
        failed = [result for result in results if isinstance(result, Exception)]
        return failed[0] if failed else concatenate([result for result in results if isinstance(result, Beliefs)])

    def _resume(self, batch: Batch, result: Beliefs | Exception | None = None) -> None:
        try:
            batch.resume(result)
        except Exception as error:
            self._fail(batch, error)
        if batch.forward is not None:
            self._waiting.append(batch)

    def _fail(self, batch: Batch, error: Exception) -> None:
        """Decode each request of a failed batch on its own; a request that fails on its own ends with the error."""
        self.broken |= isinstance(error, torch.AcceleratorError)
        if len(batch.requests) == 1 or self.broken:
            for pending in batch.active:
                self._fail_one(pending, error)
            return
        log.warning("%d requests are decoded again, each on its own: %s", len(batch.active), error)
        for pending in batch.active:
            pending.isolated = True
        self._admission.add(batch.active)

    def _fail_one(self, pending: PendingRequest, error: Exception) -> None:
        if out_of_memory(error) and not pending.retried and not pending.streamed:
            pending.retried = True
            self._admission.add([pending])
        elif out_of_memory(error):
            pending.post(TooLargeError("the request does not fit the memory: shorten it or search less"))
        else:
            if not isinstance(error, UnmaskError):
                log.error("a request failed", exc_info=error)
            pending.post(error)


class Admission:
    """Requests that are about to be decoded, grouped by their batch keys.

    Where requests end one by one, those that take their places would each be a batch of one, and many small batches
    cost more than the forward passes that they share. So a request waits a few forward passes for others, unless few
    with its key are being decoded.
    """

    def __init__(self, model: Model):
        self.model = model
        self._groups: defaultdict[Hashable, list[PendingRequest]] = defaultdict(list)
        self._waited = Counter[Hashable]()  # forward passes that each group has waited

    def __len__(self) -> int:
        return sum(pending.active for group in self._groups.values() for pending in group)

    def add(self, requests: Iterable[PendingRequest]) -> None:
        for pending in requests:
            self._groups[batch_key(self.model, pending)].append(pending)

    def count_forward(self) -> None:
        self._waited.update(self._groups.keys())

    def take(self, decoded: Mapping[Hashable, int]) -> Iterator[tuple[Hashable, list[PendingRequest]]]:
        """Take the groups that need not wait longer, given how many requests of each key are being decoded."""
        for key, group in list(self._groups.items()):
            requests = [pending for pending in group if pending.active]
            if ENOUGH * len(requests) >= decoded.get(key, 0) or self._waited[key] >= PATIENCE or not requests:
                del self._groups[key], self._waited[key]
                yield key, requests


class LocalReplica(Replica):
    """A thread with a scheduler for one loaded model."""

    def __init__(self, model: Model, limits: RequestLimits, on_forward: OnForward, queue: RequestQueue):
        super().__init__(queue, model.name)
        self.max_running = limits.running
        self.scheduler = Scheduler(model, limits.max_batch, on_forward)

    @property
    def broken(self) -> bool:
        return self.scheduler.broken

    @property
    def running(self) -> int:
        return self.scheduler.running

    def _loop(self) -> None:
        # Coroutines leave and enter inference mode in any order: it has to hold outside all of them.
        with torch.inference_mode():
            while not self.stopped and not self.broken and (self.running or not self.queue.closed):
                try:
                    if not self.running:
                        self.queue.wait()
                    self.scheduler.add(self.queue.take_share(self.max_running - self.running))
                    self.scheduler.step()
                except Exception as error:  # an error of the scheduler itself: no request may wait for ever
                    log.exception("a step failed")
                    self.scheduler.stop(error)
            self.scheduler.stop(ClosingError("the server was stopped before this request was finished"))
            self.queue.remove_replica()
