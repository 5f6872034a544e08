"""Batches that share forward passes: every answer is that of `unmask.generate`, whatever else is decoded."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import unmask
from tests.serve.driver import Asked, Driver, Small, ask
from unmask.errors import UnmaskError
from unmask.serve.request import TooLargeError
from unmask.serve.scheduler import ENOUGH, PATIENCE

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
    for asked in every:
        asked.check(model)
    calls = sum(asked.output.cost.calls for asked in every)
    assert sum(driver.requests) == calls
    assert len(driver.forwards) < calls / 2
    assert max(driver.rows) <= 64


@pytest.mark.parametrize("options", [{"cache": "dual"}, {"guidance": 1.5, "early_end": True, "stop": "q"}])
def test_adapters_and_caches_work_beside_others(model, options):
    driver = Driver(model)
    every = [Asked(model, prompt, decoder="ots(beams=2, block=4)", length=8, **options) for prompt in PROMPTS[:3]]
    driver.start(*every)
    driver.finish()
    for asked in every:
        asked.check(model)


def test_streams_with_equal_settings_share_every_forward_pass(model):
    driver = Driver(model)
    every = [Asked(model, letter, decoder="low-confidence", length=8) for letter in "abcdefgh"]
    driver.start(*every)
    assert driver.finish() == every[0].output.cost.calls == len(driver.forwards)
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
    for asked in every:
        asked.check(model)


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
    driver = Driver(replace(model, denoiser=Small(model.denoiser, 3)), 16)
    every = [Asked(model, letter, decoder="ar", length=3) for letter in "abcdefgh"]
    every += [Asked(model, "abc", decoder=WIDE, length=4), *ask(model, "abcde", decoder=WIDE, length=3)]
    driver.start(*every)
    driver.finish()
    assert driver.scheduler.max_batch <= 3
    assert sum(driver.rows) == sum(asked.output.cost.computed for asked in every)
    for asked in every:
        asked.check(model)


def test_a_forward_pass_larger_than_the_batch_is_run_in_parts(model):
    driver = Driver(model, 3)
    asked = Asked(model, "abc", decoder=WIDE, length=4)
    driver.start(asked)
    driver.finish()
    assert max(driver.rows) == 3
    asked.check(model)


def test_a_request_that_does_not_fit_in_a_batch_of_its_own_is_refused_and_the_others_go_on(model):
    driver = Driver(replace(model, denoiser=Small(model.denoiser, 64, width=10)))
    small, wide = (Asked(model, "abc", decoder="ar", length=length) for length in (4, 8))
    driver.start(wide, small)
    driver.finish()
    assert isinstance(wide.events[-1], TooLargeError)
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
    for asked in every + late:
        asked.check(model)


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
