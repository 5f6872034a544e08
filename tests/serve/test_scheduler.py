"""Every answer is that of `unmask.generate`, whatever shares its forward passes; clients take turns in the queue."""

from __future__ import annotations

import pytest
import torch

import unmask
from tests.serve.driver import Asked, Driver, ask, check, failing
from unmask.errors import UnmaskError
from unmask.serve.limits import RefusedError
from unmask.serve.scheduler import ENOUGH, PATIENCE, RequestQueue

DECODERS = [
    "low-confidence",
    "random(temperature=0.7)",
    "ots(beams=3, block=4)",
    "threshold(sure=0.3)",
    "vote(n=2)",
    "order-search(beams=2, block=4)",
    "repair(inner=low-confidence)",
]
PROMPTS = ["abc", "quitealongpromptforatoy", "zz", "hello", "abcabcabcabcabc", "b", "unmask"]
FULL = torch.OutOfMemoryError("no room")
WIDE = "ots(beams=4, temperature=4.0)"  # 16 rows per forward pass


def test_answers_equal_generate_whatever_shares_the_forward_passes_and_whenever_they_join(model):
    driver = Driver(model)
    every = [
        Asked(model, prompt, decoder=decoder, length=8 + number, seed=number)
        for number, (prompt, decoder) in enumerate(zip(PROMPTS, DECODERS, strict=True))
    ]
    for asked in every:  # each joins one step after the one before
        driver.start(asked)
        driver.step()
    driver.finish()
    check(model, every)
    calls = sum(asked.output.cost.calls for asked in every)
    assert sum(driver.requests) == calls
    assert len(driver.forwards) < calls / 2
    assert max(driver.rows) <= 64


@pytest.mark.parametrize("options", [{"cache": "dual"}, {"guidance": 1.5, "early_end": True, "stop": "q"}])
def test_adapters_and_caches_work_beside_others(model, options):
    driver = Driver(model)
    every = [Asked(model, prompt, decoder="ots(beams=2, block=4)", length=8, **options) for prompt in PROMPTS[:3]]
    driver.finish(*every)
    check(model, every)


def test_streams_with_equal_settings_share_every_forward_pass(model):
    driver = Driver(model)
    every = [Asked(model, letter, decoder="low-confidence", length=8) for letter in "abcdefgh"]
    assert driver.finish(*every) == every[0].output.cost.calls == len(driver.forwards)
    assert set(driver.forwards) == {(8, 8)}


def test_a_short_request_ends_while_a_long_one_is_decoded(model):
    driver = Driver(model)
    long = Asked(model, "abc", decoder="ar", length=20)
    short = Asked(model, "abd", decoder="ar", length=4)
    driver.start(long)
    driver.step(5)
    driver.start(short)
    driver.step(8)  # its rows are too narrow to share the long one's forward passes: they take turns
    assert short.pending.ended
    assert not long.pending.ended
    driver.finish()
    short.check(model)
    long.check(model)


def test_a_full_batch_takes_turns(model):
    driver = Driver(model, 2)
    every = [Asked(model, letter, decoder="ar", length=4) for letter in "abcde"]
    driver.start(*every)
    driver.step(3)  # 5 forward passes, two at a time
    assert driver.rows == [2, 2, 2]
    driver.finish()
    check(model, every)


def test_a_cancelled_request_is_gone_before_the_next_forward_pass(model):
    driver = Driver(model)
    stays, goes = (Asked(model, prompt, decoder="ar", length=8) for prompt in ("abc", "abd"))
    driver.start(stays, goes)
    driver.step()
    posted = len(goes.events)
    goes.pending.cancel()
    driver.step()
    assert driver.rows == [2, 1]
    driver.finish()
    assert len(goes.events) == posted
    stays.check(model)


def test_a_forward_pass_that_does_not_fit_is_halved_and_so_are_later_ones(model):
    driver = Driver(failing(model, FULL, lambda canvas: len(canvas) > 3), 16)
    every = [Asked(model, letter, decoder="ar", length=3) for letter in "abcdefgh"]
    every += [Asked(model, "abc", decoder=WIDE, length=4), *ask(model, "abcde", decoder=WIDE, length=3)]
    driver.finish(*every)
    assert driver.scheduler.max_batch <= 3
    assert sum(driver.rows) == sum(asked.output.cost.computed for asked in every)
    check(model, every)


def test_a_forward_pass_larger_than_the_batch_is_run_in_parts(model):
    driver = Driver(model, 3)
    asked = Asked(model, "abc", decoder=WIDE, length=4)
    driver.finish(asked)
    assert max(driver.rows) == 3
    asked.check(model)


def test_a_request_that_does_not_fit_in_a_batch_of_its_own_is_refused_and_the_others_go_on(model):
    driver = Driver(failing(model, FULL, lambda canvas: canvas.width > 10))
    small, wide = (Asked(model, "abc", decoder="ar", length=length) for length in (4, 8))
    driver.finish(wide, small)
    assert getattr(wide.events[-1], "code", None) == "out_of_memory"
    small.check(model)


MANY = 3 * ENOUGH


@pytest.fixture
def busy(model: unmask.Model) -> tuple[Driver, list[Asked]]:
    """A scheduler with many requests being decoded, which has counted no forward pass yet."""
    driver, every = Driver(model), ask(model, "abc" * ENOUGH, decoder="ar", length=3 * PATIENCE)
    driver.start(*every)
    driver.step()
    driver.forwards.clear()
    return driver, every


def test_a_request_that_comes_while_many_are_decoded_waits_for_others_but_not_for_long(model, busy):
    driver, every = busy
    late = ask(model, "x", decoder="ar", length=3 * PATIENCE)
    driver.start(*late)
    assert driver.running == MANY + 1
    driver.step(PATIENCE + 1)
    assert driver.requests == [MANY] * PATIENCE + [MANY + 1]
    driver.finish()
    check(model, every + late)


def test_enough_requests_that_come_one_by_one_begin_together_before_patience_ends(model, busy):
    driver, _ = busy
    for asked in ask(model, "xyz", decoder="ar", length=3 * PATIENCE):
        driver.start(asked)
        driver.step()
    assert driver.requests == [MANY, MANY, MANY + 3]


def test_a_request_does_not_wait_for_others_that_cannot_share_its_batch(model, busy):
    driver, _ = busy
    others = ask(model, "x", decoder="ar", length=2 * PATIENCE)  # of a different length
    others.append(Asked(model, "y", show="text", decoder="ar", length=3 * PATIENCE))
    driver.start(*others)
    driver.step()
    assert driver.requests == [MANY + 2]


def test_a_request_that_is_cancelled_while_it_waits_for_others_never_begins(model, busy):
    driver, _ = busy
    late = ask(model, "xy", decoder="ar", length=3 * PATIENCE)
    driver.start(*late)
    late[0].pending.cancel()
    driver.step()
    assert driver.running == MANY + 1
    late[1].pending.cancel()
    driver.finish()
    assert set(driver.requests) == {MANY}
    assert not any(asked.events for asked in late)


def test_every_request_ends_when_the_scheduler_stops(model, busy):
    driver, every = busy
    late = ask(model, "x", decoder="ar", length=3 * PATIENCE)
    driver.start(*late)
    with torch.inference_mode():
        driver.scheduler.end_all(UnmaskError("stopped"))
    assert [str(asked.events[-1]) for asked in every + late] == ["stopped"] * (MANY + 1)
    assert not driver.running


def test_clients_take_turns(model):
    queue = RequestQueue(10, 4)
    for client in "aaaabc":
        queue.put(Asked(model, "abc", client=client).pending)
    taken = [queue.take() for _ in range(6)]
    assert "".join(each.request.client for each in taken if each) == "abcaaa"
    assert queue.take() is None


def test_replicas_share_what_waits(model):
    queue = RequestQueue(10, 4, replicas=2)
    every = [Asked(model, "abc").pending for _ in range(5)]
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
    first = Asked(model, "abc").pending
    queue.put(first)
    queue.put(Asked(model, "abc").pending)
    with pytest.raises(RefusedError, match="2 requests are waiting already: try again in 1 s") as refused:
        queue.put(Asked(model, "abc", client="b").pending)
    assert (refused.value.code, refused.value.retry_after) == ("queue_full", 1)
    first.cancel()  # leaves its place
    queue.put(Asked(model, "abc", client="b").pending)


def test_what_waits_is_refused_when_the_queue_is_closed(model):
    queue, waiting = RequestQueue(2, 4), Asked(model, "abc")
    queue.put(waiting.pending)
    queue.close()
    assert getattr(waiting.events[0], "code", None) == "shutting_down"
    with pytest.raises(RefusedError, match="shutting down"):
        queue.put(Asked(model, "abc").pending)
