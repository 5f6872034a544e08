"""The loop of the server: admit requests into batches, run a forward pass, continue the decoders that waited for it.

Every batch runs the code of `unmask generate` in a coroutine that stops whenever its decoder needs the network
(`Batch.forward`). `Scheduler.step` takes the forward passes that have waited longest, as many as fit, runs them as one
and resumes their batches. So a request begins within a few steps whatever else is decoded, and a decoder needs to know
nothing of other requests.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain, islice
from threading import Condition, Thread

import torch

from unmask.core import Beliefs
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.runs.generation import out_of_memory
from unmask.serve.batch import Batch, Forward, batch_key, concatenate, run_together
from unmask.serve.limits import RefusedError, RequestLimits
from unmask.serve.request import PendingRequest

ENOUGH = 8  # a group is admitted once it has 1/8 as many requests as are being decoded with its key
PATIENCE = 8  # forward passes that a group waits at most
CLOSING = "the server is shutting down: try again later"

OnForward = Callable[[int, int], None]  # called with the rows and the requests of every forward pass
log = logging.getLogger("unmask.serve")


class RequestQueue:
    """Requests that wait. Clients take turns, however many requests each of them has waiting."""

    def __init__(self, max_waiting: int, running: int, replicas: int = 1):
        self.max_waiting, self.running = max_waiting, running
        self.changed = Condition()
        self.closed = False
        self._clients: OrderedDict[str, deque[PendingRequest]] = OrderedDict()
        self._mean_seconds = 1.0  # moving average of the time that a request is decoded
        self._replicas = replicas  # that take requests

    def __len__(self) -> int:
        with self.changed:
            return sum(not pending.cancelled for waiting in self._clients.values() for pending in waiting)

    def remove_replica(self) -> None:
        """Close the queue with the last replica, since nothing would take its requests."""
        with self.changed:
            self._replicas -= 1
            if not self._replicas:
                self.close()

    def put(self, pending: PendingRequest) -> None:
        with self.changed:
            if self.closed:
                raise RefusedError(CLOSING, "shutting_down")
            if (waiting := len(self)) >= self.max_waiting:
                seconds = min(60, max(1, round(waiting / self.running * self._mean_seconds)))
                message = f"{waiting} requests are waiting already: try again in {seconds} s"
                raise RefusedError(message, "queue_full", retry_after=seconds)
            self._clients.setdefault(pending.request.client, deque()).append(pending)
            self.changed.notify_all()

    def put_back(self, pending: PendingRequest) -> None:
        """Put a request that was taken before in front of all others."""
        with self.changed:
            self._clients.setdefault(pending.request.client, deque()).appendleft(pending)
            self._clients.move_to_end(pending.request.client, last=False)
            self.changed.notify_all()

    def take(self) -> PendingRequest | None:
        """Take the first request of the client whose turn it is."""
        with self.changed:
            while self._clients:
                client, waiting = self._clients.popitem(last=False)
                pending = waiting.popleft()
                if waiting:
                    self._clients[client] = waiting
                if not pending.cancelled:
                    pending.started = time.monotonic()
                    return pending
            return None

    def take_share(self, most: int) -> list[PendingRequest]:
        """Take up to `most` requests, and no more than a replica's share of those that wait."""
        with self.changed:
            share = max(1, -(-len(self) // max(1, self._replicas)))
            return list(islice(iter(self.take, None), max(0, min(most, share))))

    def record_end(self, pending: PendingRequest) -> None:
        """Count the time of a request that has ended in the moving average."""
        if pending.started is not None:
            self._mean_seconds = 0.9 * self._mean_seconds + 0.1 * (time.monotonic() - pending.started)

    def wait(self) -> None:
        """Wait until there is a request to take or the queue is closed."""
        with self.changed:
            self.changed.wait_for(lambda: self.closed or bool(self._clients))

    def close(self) -> None:
        """Refuse the requests that wait and all that come later."""
        with self.changed:
            self.closed = True
            while pending := self.take():
                pending.post(RefusedError(CLOSING, "shutting_down"))
            self.changed.notify_all()


class Replica(ABC):
    """Threads that take requests from a queue and decode them, in this process or in a different one."""

    broken = False  # its device failed: only a new process can use it again
    running = 0  # requests being decoded

    def __init__(self, queue: RequestQueue, name: str, threads: int = 1):
        self.queue, self.stopped = queue, False
        self._threads = [Thread(target=self._loop, name=f"unmask-{name}", daemon=True) for _ in range(threads)]

    @abstractmethod
    def _loop(self) -> None:
        """Decode requests until the replica is stopped or the queue is closed."""

    @property
    def alive(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads, and with them the requests that are being decoded."""
        self.stopped = True

    def join(self, timeout: float | None = None) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        for thread in self._threads:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))


class Scheduler(Replica):
    """A thread that decodes requests with one model, many at a time.

    Where requests end one by one, those that take their places would each be a batch of one, and many small batches
    cost more than the forward passes that they share. So requests with the same batch key form a group, which waits a
    few forward passes for more of them, unless few with its key are being decoded.
    """

    def __init__(self, model: Model, limits: RequestLimits, on_forward: OnForward, queue: RequestQueue):
        super().__init__(queue, model.name)
        self.model, self.on_forward = model, on_forward
        self.max_batch, self.max_running = limits.max_batch, limits.running
        self._groups: defaultdict[Hashable, list[PendingRequest]] = defaultdict(list)  # requests to be admitted
        self._waited = Counter[Hashable]()  # forward passes that each group has waited
        self._waiting: deque[Batch] = deque()  # batches with a forward pass, the one that has waited longest first

    def _loop(self) -> None:
        # Coroutines leave and enter inference mode in any order: it has to hold outside all of them.
        with torch.inference_mode():
            while not self.stopped and not self.broken and (self.running or not self.queue.closed):
                try:
                    if not self.running:
                        self.queue.wait()
                    self.add(self.queue.take_share(self.max_running - self.running))
                    self.step()
                except Exception as error:  # an error of the scheduler itself: no request may wait for ever
                    log.exception("a step failed")
                    self.end_all(error)
            self.end_all(RefusedError("the server was stopped before this request was finished", "shutting_down"))
            self.queue.remove_replica()

    def add(self, requests: Iterable[PendingRequest]) -> None:
        self._group(requests)
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
            self._waited.update(self._groups.keys())
        self._count()

    def end_all(self, error: Exception) -> None:
        """End every request with an error."""
        for batch in self._waiting:
            batch.stop()
        for pending in chain(*self._groups.values(), *(batch.requests for batch in self._waiting)):
            pending.post(error)
        for waiting in (self._groups, self._waited, self._waiting):
            waiting.clear()
        self._count()

    def _group(self, requests: Iterable[PendingRequest]) -> None:
        for pending in requests:
            self._groups[batch_key(self.model, pending)].append(pending)

    def _count(self) -> None:
        """Count the requests being decoded or about to be: once per step, since other threads read the number."""
        self.running = sum(pending.active for pending in chain(*self._groups.values())) + sum(map(len, self._waiting))

    def _remove_cancelled(self) -> None:
        for batch in [batch for batch in self._waiting if batch.find_cancelled()]:
            self._waiting.remove(batch)
            if batch.active:
                self._resume(batch)
            else:
                batch.stop()

    def _admit(self) -> Iterator[Batch]:
        """Make batches of the groups that need not wait longer."""
        decoded = Counter[Hashable]()  # requests being decoded by batch key
        for batch in self._waiting:
            decoded[batch.key] += len(batch)
        for key, group in list(self._groups.items()):
            requests = [pending for pending in group if pending.active]
            if ENOUGH * len(requests) >= decoded[key] or self._waited[key] >= PATIENCE or not requests:
                del self._groups[key], self._waited[key]
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
        self._group(batch.active)

    def _fail_one(self, pending: PendingRequest, error: Exception) -> None:
        if out_of_memory(error) and not pending.retried and not pending.streamed:
            pending.retried = True
            self._group([pending])
        elif out_of_memory(error):
            sentence = "the request does not fit the memory: shorten it or search less"
            pending.post(RefusedError(sentence, "out_of_memory"))
        else:
            if not isinstance(error, UnmaskError):
                log.error("a request failed", exc_info=error)
            pending.post(error)
