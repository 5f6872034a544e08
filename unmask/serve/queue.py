"""The queue of an engine, and the replicas that take requests from it in turns by client."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import islice
from threading import Condition, Thread

from unmask.serve.request import BusyError, ClosingError, Request, Update

Event = Update | Exception
CLOSING = "the server is shutting down: try again later"


class PendingRequest:
    """A request inside an engine, from its arrival to its end.

    `post` is called with every update, the last of which has the answer, or with the exception that ended the request.
    """

    def __init__(self, request: Request, post: Callable[[Event], None]):
        self.request, self._post = request, post
        self.on_cancel: Callable[[], object] = lambda: None  # called once, by `cancel`
        self.arrived = time.monotonic()
        self.started: float | None = None  # when it left the queue
        self.streamed = False  # a part of its answer was posted, so it cannot be decoded again from the start
        self.isolated = False  # it gets a batch of its own, since a batch that it shared has failed
        self.retried = False  # it was decoded again after it did not fit the memory
        self.lost_workers = 0  # workers that died while they decoded it
        self.cancelled = False
        self.ended = False

    @property
    def active(self) -> bool:
        return not self.ended and not self.cancelled

    def post(self, event: Event) -> None:
        if not self.active:
            return
        if isinstance(event, Update):
            self.streamed |= bool(event.text or event.line or event.draft)
            self.ended = event.answer is not None
        else:
            self.ended = True
        self._post(event)

    def cancel(self) -> None:
        """Post nothing from now on; the scheduler frees its rows before the next forward pass."""
        if self.active:
            self.on_cancel()
        self.cancelled = True


class RequestQueue:
    """Requests that wait. Clients take turns, however many requests each of them has waiting."""

    def __init__(self, max_waiting: int, running: int):
        self.max_waiting, self.running = max_waiting, running
        self.changed = Condition()
        self.closed = False
        self._clients: OrderedDict[str, deque[PendingRequest]] = OrderedDict()
        self._mean_seconds = 1.0  # moving average of the time that a request is decoded
        self._replicas = 0  # replicas that take requests

    def __len__(self) -> int:
        with self.changed:
            return sum(not pending.cancelled for waiting in self._clients.values() for pending in waiting)

    def add_replica(self) -> None:
        with self.changed:
            self._replicas += 1

    def remove_replica(self) -> None:
        """Close the queue with the last replica, since nothing would take its requests."""
        with self.changed:
            self._replicas -= 1
            if not self._replicas:
                self.close()

    def put(self, pending: PendingRequest) -> None:
        with self.changed:
            if self.closed:
                raise ClosingError(CLOSING)
            if (waiting := len(self)) >= self.max_waiting:
                seconds = min(60, max(1, round(waiting / self.running * self._mean_seconds)))
                message = f"{waiting} requests are waiting already: try again in {seconds} s"
                raise BusyError(message, retry_after=seconds)
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
                pending.post(ClosingError(CLOSING))
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
        self.queue.add_replica()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads, and with them the requests that are being decoded."""
        self.stopped = True

    def join(self, timeout: float | None = None) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        for thread in self._threads:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))
