"""The queue: clients take turns, a limit holds, and closing refuses what waits."""

from __future__ import annotations

import pytest

from unmask.serve.request import BusyError, ClosingError, Event, PendingRequest, RequestLimits, read_request
from unmask.serve.scheduler import RequestQueue


def waiting(model, client: str, events: list[Event] | None = None) -> PendingRequest:
    request = read_request(model, "abc", {"decoder": "ar", "length": 4, "client": client}, RequestLimits())
    return PendingRequest(request, ([] if events is None else events).append)


def test_clients_take_turns(model):
    queue = RequestQueue(10, 4)
    for client in "aaaabc":
        queue.put(waiting(model, client))
    taken = [queue.take() for _ in range(6)]
    assert "".join(each.request.client for each in taken if each) == "abcaaa"
    assert queue.take() is None


def test_replicas_share_what_waits(model):
    queue = RequestQueue(10, 4)
    for _ in range(2):
        queue.add_replica()
    every = [waiting(model, "a") for _ in range(5)]
    for each in every:
        queue.put(each)
    assert queue.take_share(0) == []
    assert queue.take_share(8) == every[:3]
    every[3].cancel()
    assert queue.take_share(8) == every[4:]
    queue.put(every[0])
    every[0].cancel()
    assert queue.take_share(8) == []
    assert not queue._clients  # nothing to be woken for


def test_a_full_queue_refuses_and_says_when_to_come_back(model):
    queue = RequestQueue(2, 4)
    first = waiting(model, "a")
    queue.put(first)
    queue.put(waiting(model, "a"))
    with pytest.raises(BusyError, match="2 requests are waiting already: try again in 1 s") as refused:
        queue.put(waiting(model, "b"))
    assert refused.value.retry_after == 1
    first.cancel()  # leaves its place
    queue.put(waiting(model, "b"))


def test_what_waits_is_refused_when_the_queue_is_closed(model):
    queue, events = RequestQueue(2, 4), []
    queue.put(waiting(model, "a", events))
    queue.close()
    assert isinstance(events[0], ClosingError)
    with pytest.raises(ClosingError):
        queue.put(waiting(model, "a"))
