"""Requests with equal settings decode as one batch: every answer as alone, and none waits for the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

import unmask
from tests.serve.test_batcher import PROMPTS, Asked, Small, finish
from unmask.core import Beliefs, CacheView, Canvas, Wrapper
from unmask.errors import UnmaskError
from unmask.serve import scheduler as serve_batcher
from unmask.serve.batch import Question, answer
from unmask.serve.errors import TooLargeError
from unmask.serve.scheduler import PART, PATIENCE, Batcher, Gathering

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


def ask(model: unmask.Model, prompts, **decoding) -> list[Asked]:
    """Requests that differ by their prompts and seeds, and want only an answer."""
    return [Asked(model, prompt, show=None, seed=7 * seed, **decoding) for seed, prompt in enumerate(prompts)]


def check(model: unmask.Model, every: list[Asked]) -> None:
    """In one batch, every answer is that of `generate`."""
    for asked in every:
        asked.check(model)
        assert not asked.ticket.alone  # it was not begun again


def start(batcher: Batcher, every: list[Asked]) -> None:
    with torch.inference_mode():
        batcher.start(*(asked.ticket for asked in every))


def step(batcher: Batcher, count: int = 1) -> None:
    with torch.inference_mode():
        for _ in range(count):
            batcher.step()


def groups(model: unmask.Model, every: list[Asked]) -> list[int]:
    """How many requests there are of each settings."""
    gathering = Gathering(model)
    gathering.add(asked.ticket for asked in every)
    return [len(tickets) for _, tickets in gathering.take({})]


def slow(*values) -> list:
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


@pytest.mark.parametrize("decoder", [*DECODERS, *slow(*OTHERS)])
def test_answers_of_one_batch_equal_those_alone_whatever_the_seeds_and_whenever_they_join(model, decoder):
    batcher = Batcher(model, 16)
    first = ask(model, ["abc", "abc", *PROMPTS[2:4]], decoder=decoder, length=6)  # a prompt twice, with two seeds
    later = ask(model, PROMPTS[5:], decoder=decoder, length=6)
    start(batcher, first)
    assert len(batcher) == 4
    step(batcher, 2)
    start(batcher, later)
    finish(batcher)
    check(model, first + later)
    lone = Asked(model, later[-1].prompt, show=None, **later[-1].options)
    start(batcher, [lone])
    finish(batcher)
    for name in ("text", "finish", "ids", "logp", "prompt_tokens"):
        assert getattr(lone.answer, name) == getattr(later[-1].answer, name)


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
    batcher = Batcher(model, 64)
    every = ask(model, ["zz", "hello", "b", "unmask"], decoder=decoder, length=8, **options)
    assert groups(model, every) == [4]
    start(batcher, every)
    finish(batcher)
    check(model, every)


def test_a_batch_asks_once_for_all_its_requests(model):
    forwards: list[tuple[int, int]] = []
    batcher = Batcher(model, 64, lambda rows, requests: forwards.append((rows, requests)))
    every = ask(model, "abcde", decoder="low-confidence", length=6)
    start(batcher, every)
    assert finish(batcher) == 3
    assert forwards == [(5, 5)] * 3
    check(model, every)


def test_only_equal_settings_make_a_batch(model):
    alike = ask(model, ["abc", "abd"], decoder="ots(beams=2)", length=8)
    other = [
        *ask(model, ["abc"], decoder="ots(beams=3)", length=8),
        *ask(model, ["abc"], decoder="ots(beams=2)", length=9),
        *ask(model, ["abc" * 9], decoder="ots(beams=2)", length=8),  # more than twice as wide
        *ask(model, ["abc", "abd"], decoder="ots(beams=2)", length=8, cache="dual"),
        *ask(model, ["abc", "abd"], decoder="repair", length=8),  # would wait for one another
        *ask(model, ["abc", "abd"], decoder="ots(beams=2)", length=8, stop="x"),  # would, too
        Asked(model, "abc", show="text", decoder="ots(beams=2)", length=8),
    ]
    assert groups(model, alike + other) == [2, 1, 1, 1, 2, 1, 1, 1, 1, 1]


def test_a_batch_is_no_larger_than_a_forward(model):
    forwards: list[tuple[int, int]] = []
    batcher = Batcher(model, 4, lambda rows, requests: forwards.append((rows, requests)))
    every = ask(model, "abcdef", decoder="low-confidence", length=6)
    start(batcher, every)
    assert finish(batcher) == 6
    assert set(forwards) == {(4, 4), (2, 2)}
    check(model, every)


def busy(model: unmask.Model, count: int) -> tuple[Batcher, list[Asked], list[int]]:
    """So many requests being decoded, and a list of the requests of every forward from now on."""
    forwards: list[int] = []
    batcher = Batcher(model, 64, lambda rows, requests: forwards.append(requests))
    every = ask(model, "abc" * (count // 3), decoder="ar", length=3 * PATIENCE)
    start(batcher, every)
    step(batcher)
    forwards.clear()
    return batcher, every, forwards


def test_one_that_comes_while_many_are_decoded_waits_for_others_but_not_for_long(model):
    many = 3 * PART
    batcher, every, forwards = busy(model, many)
    late = ask(model, "x", decoder="ar", length=3 * PATIENCE)
    start(batcher, late)
    assert len(batcher) == many + 1
    step(batcher, PATIENCE + 1)
    assert forwards == [many] * PATIENCE + [many + 1]
    finish(batcher)
    check(model, every + late)


def test_enough_that_come_one_by_one_begin_together_before_patience_ends(model):
    many = 3 * PART
    batcher, every, forwards = busy(model, many)
    late = ask(model, "xyz", decoder="ar", length=3 * PATIENCE)
    for asked in late:
        start(batcher, [asked])
        step(batcher)
    assert forwards == [many, many, many + 3]
    finish(batcher)
    check(model, every + late)


def test_nobody_waits_for_others_that_cannot_share_a_batch(model):
    many = 3 * PART
    batcher, every, forwards = busy(model, many)
    others = [
        *ask(model, "x", decoder="ar", length=2 * PATIENCE),  # another length
        Asked(model, "y", show="text", decoder="ar", length=3 * PATIENCE),  # a stream
    ]
    start(batcher, others)
    step(batcher)
    assert forwards == [many + 2]
    finish(batcher)
    check(model, every + others)


def test_one_that_is_given_up_while_it_waits_for_others_never_begins(model):
    batcher, every, forwards = busy(model, 3 * PART)
    late = ask(model, "xy", decoder="ar", length=3 * PATIENCE)
    start(batcher, late)
    late[0].ticket.cancel()
    step(batcher)
    assert len(batcher) == 3 * PART + 1
    late[1].ticket.cancel()
    finish(batcher)
    assert set(forwards) == {3 * PART}
    assert not any(asked.events for asked in late)
    check(model, every)


def test_one_that_waits_for_others_is_told_when_the_server_stops(model):
    batcher, every, _ = busy(model, 3 * PART)
    late = ask(model, "x", decoder="ar", length=3 * PATIENCE)
    start(batcher, late)
    with torch.inference_mode():
        batcher.stop(UnmaskError("stopped"))
    assert [str(asked.events[-1]) for asked in every + late] == ["stopped"] * (3 * PART + 1)
    assert not len(batcher)


@pytest.mark.parametrize("cache", [None, "dual"])
@pytest.mark.parametrize("decoder", ["ar", *slow("ots(beams=2, block=1, temperature=2.0)", "search(plausible=0.01)")])
def test_a_cancelled_request_takes_its_rows_out_of_the_batch(model, decoder, cache):
    forwards: list[tuple[int, int]] = []
    batcher = Batcher(model, 64, lambda rows, requests: forwards.append((rows, requests)))
    every = ask(model, ["abc", "xyz", "hello", "quite"], decoder=decoder, length=8, cache=cache)
    start(batcher, every)
    step(batcher, 2)
    assert [requests for _, requests in forwards] == [4, 4]
    for asked in every[1::2]:
        asked.ticket.cancel()
    finish(batcher)
    assert not any(asked.events for asked in every[1::2])
    check(model, every[::2])
    batcher = Batcher(model, 64, lambda rows, requests: without.append((rows, requests)))
    without: list[tuple[int, int]] = []
    start(batcher, [Asked(model, asked.prompt, show=None, **asked.options) for asked in every[::2]])
    finish(batcher)
    assert forwards[2:] == without[2:]


def test_a_batch_ends_with_the_last_of_its_requests(model):
    sizes: list[int] = []
    batcher = Batcher(model, 64, lambda rows, _: sizes.append(rows))
    every = ask(model, ["abc", "xyz"], decoder="ar", length=8)
    start(batcher, every)
    step(batcher)
    for asked in every:
        asked.ticket.cancel()
    finish(batcher)
    assert sizes == [2]
    assert not any(asked.events for asked in every)


@pytest.mark.parametrize("decoder", ["adaptive(sure=0.3)", *slow("search(plausible=0.02)")])
def test_a_request_that_ends_early_is_answered_at_once(model, decoder):
    forwards: list[int] = []
    batcher = Batcher(model, 64, lambda rows, _: forwards.append(rows))
    every = ask(model, PROMPTS[2:], decoder=decoder, length=8)
    start(batcher, every)
    when: dict[int, int] = {}
    while len(batcher):
        step(batcher)
        when |= {number: len(forwards) for number, asked in enumerate(every) if asked.events and number not in when}
        assert len(batcher) == sum(not asked.events for asked in every)
    assert len(set(when.values())) > 1
    check(model, every)


class Allergic(Wrapper):
    """Fails where a token occurs."""

    def __init__(self, inner, token: int, error: Exception):
        super().__init__(inner)
        self.token, self.error = token, error

    def __call__(self, canvas: Canvas, at, cache: CacheView | None = None) -> Beliefs:
        if (canvas.tokens[:, : canvas.start] == self.token).any():
            raise self.error
        return self.inner(canvas, at, cache)


@pytest.mark.parametrize("error", [UnmaskError("no"), *slow(ValueError("no"), torch.OutOfMemoryError("no"))])
def test_a_request_that_fails_does_not_take_its_batch_along(model, error):
    token = model.text.encode("z")[0]
    batcher = Batcher(replace(model, denoiser=Allergic(model.denoiser, token, error)), 64)
    every = ask(model, ["abc", "zoo", "abd", "cab"], decoder="low-confidence(temperature=1.0)", length=8)
    start(batcher, every)
    finish(batcher)
    for asked in every[:1] + every[2:]:
        asked.check(model)
    expected = TooLargeError if isinstance(error, torch.OutOfMemoryError) else type(error)
    assert isinstance(every[1].events[-1], expected)


def test_a_batch_that_does_not_fit_is_asked_in_smaller_parts(model):
    sizes: list[int] = []
    batcher = Batcher(replace(model, denoiser=Small(model.denoiser, 3)), 16, lambda rows, _: sizes.append(rows))
    every = ask(model, "abcde", decoder="ots(beams=2, temperature=4.0)", length=4)
    start(batcher, every)
    finish(batcher)
    assert batcher.batch <= 3
    assert sum(sizes) == sum(asked.output.cost.computed for asked in every)
    check(model, every)


def test_a_batch_with_a_cache_asks_once_and_begins_again_one_by_one_where_it_does_not_fit(model, monkeypatch):
    forwards: list[tuple[int, int]] = []
    batcher = Batcher(model, 64, lambda rows, requests: forwards.append((rows, requests)))
    every = ask(model, "abcde", decoder="low-confidence(block=3)", length=6, cache="dual")
    start(batcher, every)
    finish(batcher)
    assert set(forwards) == {(5, 5)}
    check(model, every)

    def small(questions: Sequence[Question]) -> list[Beliefs]:
        if sum(question.rows for question in questions) > 3:
            raise torch.OutOfMemoryError("no room")
        return answer(questions)

    monkeypatch.setattr(serve_batcher, "answer", small)
    forwards.clear()
    again = ask(model, "abcde", decoder="low-confidence(block=3)", length=6, cache="dual")
    start(batcher, again)
    finish(batcher)
    assert set(forwards) == {(1, 1)}
    for asked in again:
        asked.check(model)
