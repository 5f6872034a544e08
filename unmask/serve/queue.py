"""A request inside an engine: its place in the queue, whether it is still wanted, and where its updates go."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import islice
from threading import Condition

from unmask.serve.errors import BusyError, ClosingError
from unmask.serve.request import Request, Update

Event = Update | Exception


class Ticket:
    """`post` is called with every update, the last of which has the answer, or with the exception that ended it."""

    def __init__(self, request: Request, post: Callable[[Event], None]):
        self.request, self._post = request, post
        self._when_cancelled: Callable[[], object] = lambda: None
        self.arrived = time.monotonic()
        self.started: float | None = None  # when it left the queue
        self.told = False  # whether any text was posted
        self.alone = False  # whether it shares no batch, since one that it shared has failed
        self.retried = False  # after its memory was refused
        self.losses = 0  # of workers that decoded it
        self.cancelled = False
        self.ended = False

    @property
    def wanted(self) -> bool:
        return not self.ended and not self.cancelled

    def post(self, event: Event) -> None:
        if not self.wanted:
            return
        if isinstance(event, Update):
            self.told |= bool(event.text or event.line or event.draft)
            self.ended = event.answer is not None
        else:
            self.ended = True
        self._post(event)

    def when_cancelled(self, call: Callable[[], object]) -> None:
        """For whoever decodes it out of reach."""
        self._when_cancelled = call

    def cancel(self) -> None:
        """Its rows are gone before the next step."""
        if not self.cancelled and not self.ended:
            self._when_cancelled()
        self.cancelled = True


class TicketQueue:
    """Tickets that wait. Clients take turns, whatever each of them has waiting."""

    def __init__(self, most: int, running: int):
        self.most, self.running = most, running
        self.changed = Condition()
        self.closed = False
        self._clients: OrderedDict[str, deque[Ticket]] = OrderedDict()
        self._seconds = 1.0  # that a request takes, on average
        self._replicas = 0  # that take tickets

    def __len__(self) -> int:
        with self.changed:
            return sum(not ticket.cancelled for tickets in self._clients.values() for ticket in tickets)

    def join(self) -> None:
        """A replica begins to take tickets."""
        with self.changed:
            self._replicas += 1

    def leave(self) -> None:
        """A replica takes no more tickets. After the last one there is no point in waiting."""
        with self.changed:
            self._replicas -= 1
            if not self._replicas:
                self.close()

    def put(self, ticket: Ticket) -> None:
        with self.changed:
            if self.closed:
                raise ClosingError("the engine is shutting down: try another one, or later")
            if (waiting := len(self)) >= self.most:
                seconds = min(60, max(1, round(waiting / self.running * self._seconds)))
                raise BusyError(f"{waiting} requests are waiting already: try again in {seconds} s", seconds)
            self._clients.setdefault(ticket.request.client, deque()).append(ticket)
            self.changed.notify_all()

    def put_back(self, ticket: Ticket) -> None:
        """First in line: it was taken before."""
        with self.changed:
            self._clients.setdefault(ticket.request.client, deque()).appendleft(ticket)
            self._clients.move_to_end(ticket.request.client, last=False)
            self.changed.notify_all()

    def take(self) -> Ticket | None:
        """The first ticket of the client whose turn it is."""
        with self.changed:
            while self._clients:
                client, tickets = self._clients.popitem(last=False)
                ticket = tickets.popleft()
                if tickets:
                    self._clients[client] = tickets
                if not ticket.cancelled:
                    ticket.started = time.monotonic()
                    return ticket
            return None

    def take_share(self, most: int) -> list[Ticket]:
        """Several, but no more than a replica's share of what waits: others take theirs."""
        with self.changed:
            share = max(1, -(-len(self) // max(1, self._replicas)))
            return list(islice(iter(self.take, None), max(0, min(most, share))))

    def ended(self, ticket: Ticket) -> None:
        if ticket.started is not None:
            self._seconds = 0.9 * self._seconds + 0.1 * (time.monotonic() - ticket.started)

    def wait(self) -> None:
        """Until there is something to take, or the queue is closed."""
        with self.changed:
            self.changed.wait_for(lambda: self.closed or bool(self._clients))

    def close(self) -> None:
        """Refuse what waits, and all that comes."""
        with self.changed:
            self.closed = True
            while ticket := self.take():
                ticket.post(ClosingError("the engine is shutting down: try another one, or later"))
            self.changed.notify_all()
