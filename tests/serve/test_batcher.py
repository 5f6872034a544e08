"""Requests that share forwards: every answer as `unmask.generate` gives it, whatever else was decoded."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import unmask
from unmask.core import Beliefs, CacheView, Canvas, Wrapper
from unmask.serve.errors import TooLargeError
from unmask.serve.queue import Event, Ticket
from unmask.serve.request import Completed, RequestLimits, Show, read_request
from unmask.serve.scheduler import Batcher

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


class Asked:
    """A ticket, and all that was posted about it."""

    def __init__(self, model: unmask.Model, prompt: str, show: Show | None = "text", **decoding):
        self.prompt, self.options = prompt, decoding
        self.events: list[Event] = []
        request = read_request(model, prompt, decoding, RequestLimits(), show=show)
        self.ticket = Ticket(request, self.events.append)

    @property
    def answer(self) -> Completed:
        last = self.events[-1]
        assert not isinstance(last, Exception), last
        assert last.answer is not None
        return last.answer

    @property
    def output(self) -> unmask.Output:
        return self.answer.output

    @property
    def streamed(self) -> str:
        return "".join(event.text for event in self.events if not isinstance(event, Exception))

    def check(self, model: unmask.Model) -> None:
        alone = unmask.generate(model, self.prompt, **self.options)
        assert (self.output.text, self.output.hypotheses) == (alone.text, alone.hypotheses)
        assert self.output.settings == alone.settings
        for count in ("forward_passes", "computed", "positions"):
            assert getattr(self.output.cost, count) == getattr(alone.cost, count)
        assert self.streamed == alone.text


def finish(batcher: Batcher) -> int:
    steps = 0
    with torch.inference_mode():
        while len(batcher) or batcher.again:
            batcher.start_again()
            batcher.step()
            steps += 1
    return steps


def test_answers_equal_generate_whatever_shares_the_forwards_and_whenever_they_join(model):
    forwards: list[tuple[int, int]] = []
    batcher = Batcher(model, 64, lambda rows, requests: forwards.append((rows, requests)))
    every = [
        Asked(model, prompt, decoder=decoder, length=8 + number, seed=number)
        for number, (prompt, decoder) in enumerate(zip(PROMPTS, DECODERS, strict=True))
    ]
    with torch.inference_mode():
        for asked in every:  # each joins one step after the one before
            batcher.start(asked.ticket)
            batcher.step()
    finish(batcher)
    for asked in every:
        asked.check(model)
    assert sum(requests for _, requests in forwards) == sum(asked.output.cost.calls for asked in every)
    assert len(forwards) < sum(asked.output.cost.calls for asked in every) / 2
    assert max(rows for rows, _ in forwards) <= 64


@pytest.mark.parametrize("options", [{"cache": "dual"}, {"guidance": 1.5, "early_end": True, "stop": "q"}])
def test_every_way_of_decoding_joins(model, options):
    batcher = Batcher(model, 64)
    every = [Asked(model, prompt, decoder="ots(beams=2, block=4)", length=8, **options) for prompt in PROMPTS[:3]]
    with torch.inference_mode():
        for asked in every:
            batcher.start(asked.ticket)
    finish(batcher)
    for asked in every:
        asked.check(model)


def test_equal_settings_share_every_forward(model):
    forwards: list[tuple[int, int]] = []
    batcher = Batcher(model, 64, lambda rows, requests: forwards.append((rows, requests)))
    every = [Asked(model, letter, decoder="low-confidence", length=8) for letter in "abcdefgh"]
    with torch.inference_mode():
        for asked in every:
            batcher.start(asked.ticket)
    assert finish(batcher) == every[0].output.cost.calls == len(forwards)
    assert set(forwards) == {(8, 8)}


def test_a_short_request_ends_while_a_long_one_is_decoded(model):
    batcher = Batcher(model, 64)
    long = Asked(model, "abc", decoder="ar", length=20)
    short = Asked(model, "abd", decoder="ar", length=4)
    with torch.inference_mode():
        batcher.start(long.ticket)
        for _ in range(5):
            batcher.step()
        batcher.start(short.ticket)
        for _ in range(8):  # its rows are too narrow to share the long one's forwards: they take turns
            batcher.step()
    assert short.ticket.ended
    assert not long.ticket.ended
    finish(batcher)
    short.check(model)
    long.check(model)


def test_a_full_batch_takes_turns(model):
    sizes: list[int] = []
    batcher = Batcher(model, 2, lambda rows, requests: sizes.append(rows))
    every = [Asked(model, letter, decoder="ar", length=4) for letter in "abcde"]
    with torch.inference_mode():
        for asked in every:
            batcher.start(asked.ticket)
        for _ in range(3):  # 5 questions, two at a time
            batcher.step()
    assert sizes == [2, 2, 2]
    finish(batcher)
    for asked in every:
        asked.check(model)


def test_a_cancelled_request_is_gone_before_the_next_forward(model):
    sizes: list[int] = []
    batcher = Batcher(model, 64, lambda rows, requests: sizes.append(rows))
    stays, goes = (Asked(model, prompt, decoder="ar", length=8) for prompt in ("abc", "abd"))
    with torch.inference_mode():
        for asked in (stays, goes):
            batcher.start(asked.ticket)
        batcher.step()
        told = len(goes.events)
        goes.ticket.cancel()
        batcher.step()
    assert sizes == [2, 1]
    finish(batcher)
    assert len(goes.events) == told
    stays.check(model)


class Small(Wrapper):
    """Memory for a few rows of a few positions only."""

    def __init__(self, inner, most: int, width: int = 100):
        super().__init__(inner)
        self.most, self.width = most, width

    def __call__(self, canvas: Canvas, at, cache: CacheView | None = None) -> Beliefs:
        if len(canvas) > self.most or canvas.width > self.width:
            raise torch.OutOfMemoryError("no room")
        return self.inner(canvas, at, cache)


def test_a_forward_that_does_not_fit_is_halved_and_so_are_those_to_come(model):
    sizes: list[int] = []
    batcher = Batcher(replace(model, denoiser=Small(model.denoiser, 3)), 16, lambda rows, _: sizes.append(rows))
    every = [Asked(model, letter, decoder="ar", length=3) for letter in "abcdefgh"]
    every.append(Asked(model, "abc", decoder="ots(beams=4, temperature=4.0)", length=4))  # 16 rows at once
    with torch.inference_mode():
        for asked in every:
            batcher.start(asked.ticket)
    finish(batcher)
    assert batcher.batch <= 3
    assert sum(sizes) == sum(asked.output.cost.computed for asked in every)
    for asked in every:
        asked.check(model)


def test_a_question_larger_than_the_batch_is_asked_in_parts(model):
    sizes: list[int] = []
    batcher = Batcher(model, 3, lambda rows, _: sizes.append(rows))
    asked = Asked(model, "abc", decoder="ots(beams=4, temperature=4.0)", length=4)
    with torch.inference_mode():
        batcher.start(asked.ticket)
    finish(batcher)
    assert max(sizes) == 3
    asked.check(model)


def test_a_request_that_does_not_fit_even_alone_is_refused_and_the_others_go_on(model):
    batcher = Batcher(replace(model, denoiser=Small(model.denoiser, 64, width=10)), 64)
    small, wide = (Asked(model, "abc", decoder="ar", length=length) for length in (4, 8))
    with torch.inference_mode():
        for asked in (wide, small):
            batcher.start(asked.ticket)
    finish(batcher)
    assert isinstance(wide.events[-1], TooLargeError)
    small.check(model)
