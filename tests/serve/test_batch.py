"""Requests with equal settings are decoded as one batch: answers are the same as alone, and none waits for others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
import torch

import unmask
from tests.serve.driver import Asked, Driver, ask, check, failing
from unmask.core import Beliefs
from unmask.errors import UnmaskError
from unmask.serve import scheduler
from unmask.serve.batch import Forward, batch_key, run_together
from unmask.serve.limits import RefusedError

DECODERS = ["random(temperature=0.7)", "search(budget=12, plausible=0.01)"]
OTHERS = [
    "ots(beams=3, block=3, temperature=2.0)",
    "low-confidence",
    "adaptive(sure=0.3, temperature=0.9)",
    "search(plausible=0.01)",
    "threshold(sure=0.2)",
    "vote(n=2)",
    "best-of(n=2, likelihood=interleaved)",
    "order-search(beams=2, block=4)",
    "token-search(beams=2, block=4)",
    "dream(alg=origin, temperature=0.5)",
    "ar(temperature=1.0)",
]


def check_together(model: unmask.Model, every: list[Asked]) -> None:
    """Every answer is that of `generate`, in the batch where it began."""
    check(model, every)
    assert not any(asked.pending.isolated for asked in every)


def batch_sizes(model: unmask.Model, every: list[Asked]) -> list[int]:
    return [*Counter(batch_key(model, asked.pending) for asked in every).values()]


def slow(*values) -> list:
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


@pytest.mark.parametrize("decoder", [*DECODERS, *slow(*OTHERS)])
def test_answers_of_one_batch_equal_those_alone_whatever_the_seeds_and_whenever_they_join(model, decoder):
    driver = Driver(model, 16)
    first = ask(model, ["abc", "abc", "zz", "hello"], decoder=decoder, length=6)  # a prompt twice, with two seeds
    later = ask(model, ["b", "unmask"], decoder=decoder, length=6)
    driver.start(*first)
    assert driver.running == 4
    driver.step(2)
    driver.finish(*later)
    check_together(model, first + later)
    single = Asked(model, later[-1].prompt, show=None, **later[-1].options)
    driver.finish(single)
    for name in ("text", "finish", "ids", "logp", "prompt_tokens"):
        assert getattr(single.answer, name) == getattr(later[-1].answer, name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("decoder", "options"),
    [
        ("ots(beams=2, block=4)", {"guidance": 1.5}),
        ("low-confidence(temperature=1.0)", {"suppress": True}),
        ("adaptive(sure=0.2)", {"early_end": True, "stop": "q"}),
        ("search", {"guidance": 0.5, "early_end": True}),
        ("low-confidence(block=4)", {"cache": "prefix"}),
        ("ots(beams=2, block=4)", {"cache": "dual"}),
        ("ots(beams=2, block=4)", {"cache": "dual(refresh=2)", "guidance": 1.5}),
        ("search(plausible=0.01, block=4)", {"cache": "dual"}),
        ("adaptive(sure=0.2, block=4)", {"cache": "dual", "stop": "q"}),
    ],
)
def test_adapters_work_in_one_batch(model, decoder, options):
    driver = Driver(model)
    every = ask(model, ["zz", "hello", "b", "unmask"], decoder=decoder, length=8, **options)
    assert batch_sizes(model, every) == [4]
    driver.finish(*every)
    check_together(model, every)


def test_a_batch_runs_one_forward_pass_per_step_for_all_its_requests(model):
    driver, every = Driver(model), ask(model, "abcde", decoder="low-confidence", length=6)
    assert driver.finish(*every) == 3
    assert driver.forwards == [(5, 5)] * 3
    check_together(model, every)


def test_only_equal_settings_make_a_batch(model):
    alike = ask(model, ["abc", "abd"], decoder="ots(beams=2)", length=8)
    other = [
        *ask(model, ["abc"], decoder="ots(beams=3)", length=8),
        *ask(model, ["abc"], decoder="ots(beams=2)", length=9),
        *ask(model, ["abc" * 9], decoder="ots(beams=2)", length=8),  # more than twice as wide
        *ask(model, ["abc", "abd"], decoder="ots(beams=2)", length=8, cache="dual"),
        *ask(model, ["abc", "abd"], decoder="repair", length=8),  # one would wait for the other
        *ask(model, ["abc", "abd"], decoder="ots(beams=2)", length=8, stop="x"),  # here as well
        Asked(model, "abc", show="text", decoder="ots(beams=2)", length=8),
    ]
    assert batch_sizes(model, alike + other) == [2, 1, 1, 1, 2, 1, 1, 1, 1, 1]


def test_a_batch_is_no_larger_than_a_forward_pass(model):
    driver, every = Driver(model, 4), ask(model, "abcdef", decoder="low-confidence", length=6)
    assert driver.finish(*every) == 6
    assert set(driver.forwards) == {(4, 4), (2, 2)}
    check_together(model, every)


@pytest.mark.parametrize("cache", [None, "dual"])
@pytest.mark.parametrize("decoder", ["ar", *slow("ots(beams=2, block=1, temperature=2.0)", "search(plausible=0.01)")])
def test_a_cancelled_request_takes_its_rows_out_of_the_batch(model, decoder, cache):
    driver = Driver(model)
    every = ask(model, ["abc", "xyz", "hello", "quite"], decoder=decoder, length=8, cache=cache)
    driver.start(*every)
    driver.step(2)
    assert driver.requests == [4, 4]
    for asked in every[1::2]:
        asked.pending.cancel()
    driver.finish()
    assert not any(asked.events for asked in every[1::2])
    check_together(model, every[::2])
    without = Driver(model)
    without.start(*(Asked(model, asked.prompt, show=None, **asked.options) for asked in every[::2]))
    without.finish()
    assert driver.forwards[2:] == without.forwards[2:]


def test_rows_are_freed_between_the_parts_of_a_forward_pass(model):
    driver = Driver(model, 2)
    every = ask(model, ["abc", "xyz"], decoder="ots(beams=2, block=1, temperature=2.0)", length=6)
    driver.start(*every)
    while len(driver.forwards) < 3:  # two forward passes have parts
        driver.step()
    every[0].pending.cancel()
    driver.finish()
    assert not every[0].events
    check_together(model, every[1:])


def test_a_batch_ends_with_the_last_of_its_requests(model):
    driver, every = Driver(model), ask(model, ["abc", "xyz"], decoder="ar", length=8)
    driver.start(*every)
    driver.step()
    for asked in every:
        asked.pending.cancel()
    driver.finish()
    assert driver.rows == [2]
    assert not any(asked.events for asked in every)


@pytest.mark.parametrize("decoder", ["adaptive(sure=0.3)", *slow("search(plausible=0.02)")])
def test_a_request_that_ends_early_is_answered_at_once(model, decoder):
    driver = Driver(model)
    every = ask(model, ["zz", "hello", "abcabcabcabcabc", "b", "unmask"], decoder=decoder, length=8)
    driver.start(*every)
    ended: dict[int, int] = {}
    while driver.running:
        driver.step()
        for number, asked in enumerate(every):
            if asked.events:
                ended.setdefault(number, len(driver.forwards))
        assert driver.running == sum(not asked.events for asked in every)
    assert len(set(ended.values())) > 1
    check_together(model, every)


@pytest.mark.parametrize("error", [UnmaskError("no"), *slow(ValueError("no"), torch.OutOfMemoryError("no"))])
def test_a_request_that_fails_does_not_fail_its_batch(model, error):
    token = model.text.encode("z")[0]
    driver = Driver(failing(model, error, lambda canvas: bool((canvas.tokens[:, : canvas.start] == token).any())))
    every = ask(model, ["abc", "zoo", "abd", "cab"], decoder="low-confidence(temperature=1.0)", length=8)
    driver.finish(*every)
    check(model, every[:1] + every[2:])
    expected = RefusedError if isinstance(error, torch.OutOfMemoryError) else type(error)
    assert isinstance(every[1].events[-1], expected)


def test_a_batch_with_a_cache_is_decoded_one_by_one_where_it_does_not_fit(model, monkeypatch):
    driver = Driver(model)
    every = ask(model, "abcde", decoder="low-confidence(block=3)", length=6, cache="dual")
    driver.finish(*every)
    assert set(driver.forwards) == {(5, 5)}
    check_together(model, every)

    def small(forwards: Sequence[Forward]) -> list[Beliefs]:
        if sum(map(len, forwards)) > 3:
            raise torch.OutOfMemoryError("no room")
        return run_together(forwards)

    monkeypatch.setattr(scheduler, "run_together", small)
    driver.forwards.clear()
    again = ask(model, "abcde", decoder="low-confidence(block=3)", length=6, cache="dual")
    driver.finish(*again)
    assert set(driver.forwards) == {(1, 1)}
    check(model, again)
