"""The queue: clients take turns, a limit holds, and closing refuses what waits."""

from __future__ import annotations

import pytest

from unmask.serve.errors import BusyError, ClosingError
from unmask.serve.queue import Event, Ticket, TicketQueue
from unmask.serve.request import RequestLimits, read_request


def ticket(model, client: str, events: list[Event] | None = None) -> Ticket:
    request = read_request(model, "abc", {"decoder": "ar", "length": 4}, RequestLimits(), client=client)
    return Ticket(request, ([] if events is None else events).append)


def test_clients_take_turns(model):
    queue = TicketQueue(10, 4)
    for client in "aaaabc":
        queue.put(ticket(model, client))
    taken = [queue.take() for _ in range(6)]
    assert "".join(each.request.client for each in taken if each) == "abcaaa"
    assert queue.take() is None


def test_replicas_share_what_waits(model):
    queue = TicketQueue(10, 4)
    for _ in range(2):
        queue.join()
    tickets = [ticket(model, "a") for _ in range(5)]
    for each in tickets:
        queue.put(each)
    assert queue.take_share(0) == []
    assert queue.take_share(8) == tickets[:3]
    tickets[3].cancel()
    assert queue.take_share(8) == tickets[4:]
    queue.put(tickets[0])
    tickets[0].cancel()
    assert queue.take_share(8) == []
    assert not queue._clients  # nothing to be woken for


def test_a_full_queue_refuses_and_says_when_to_come_back(model):
    queue = TicketQueue(2, 4)
    first = ticket(model, "a")
    queue.put(first)
    queue.put(ticket(model, "a"))
    with pytest.raises(BusyError, match="2 requests are waiting already: try again in 1 s") as refused:
        queue.put(ticket(model, "b"))
    assert refused.value.retry_after == 1
    first.cancel()  # leaves its place
    queue.put(ticket(model, "b"))


def test_what_waits_is_refused_when_the_queue_is_closed(model):
    queue, events = TicketQueue(2, 4), []
    queue.put(ticket(model, "a", events))
    queue.close()
    assert isinstance(events[0], ClosingError)
    with pytest.raises(ClosingError):
        queue.put(ticket(model, "a"))
