"""Streamed text: stable, in whole characters, never past end-of-text or a stop string, and from every decoder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import unmask
import unmask.decoders
from tests.serve.driver import Asked, Driver, ask, check
from unmask.core import Decoder, Frame, Rows, decoder
from unmask.core.decoder import resolve
from unmask.policies.remasking import sample
from unmask.serve.limits import RequestLimits
from unmask.serve.request import read_request
from unmask.serve.stream import RequestStream


def make_stream(tiny: unmask.Model, **options) -> RequestStream:
    return RequestStream(tiny, read_request(tiny, "a", {"decoder": "low-confidence", **options}, RequestLimits()))


def pieces(tiny: unmask.Model, answer: list[int], order: list[int], **options) -> list[str]:
    """The pieces of text, as the positions of an answer are written in this order."""
    stream, ids, sent = make_stream(tiny, length=len(answer), **options), [tiny.denoiser.mask_id] * len(answer), []
    for place in order:
        ids[place] = answer[place]
        sent.append(stream._unsent(stream.stable_text([[*stream.request.prompt.ids, *ids]])))
    return sent


def test_half_a_character_waits_for_the_rest(tiny):
    answer = tiny.text.encode("é☃x")
    assert len(answer) > 3
    sent = pieces(tiny, answer, list(range(len(answer))))
    assert "".join(sent) == "é☃x"
    assert not any("\ufffd" in piece for piece in sent)


def test_text_after_a_mask_waits(tiny):
    assert pieces(tiny, tiny.text.encode("123"), [2, 0, 1]) == ["", "1", "23"]


def test_nothing_follows_end_of_text(tiny):
    end = next(iter(tiny.eos))
    answer = [*tiny.text.encode("12"), end, *tiny.text.encode("3")]
    assert pieces(tiny, answer, [0, 1, 3, 2]) == ["1", "2", "", ""]


def test_the_beginning_of_a_stop_string_is_held_back(tiny):
    sent = pieces(tiny, tiny.text.encode("1=2==3"), list(range(6)), stop="==")
    assert "".join(sent) == "1=2"
    assert sent[:3] == ["1", "", "=2"]


def test_only_text_that_all_hypotheses_share_is_stable(tiny):
    stream = make_stream(tiny, decoder="ots", length=3)
    rows = [[*stream.request.prompt.ids, *tiny.text.encode(text)] for text in ("123", "129")]
    assert stream.stable_text(rows) == "12"


@dataclass(frozen=True)
class Pairs(Decoder):
    """A decoder of a different package: it writes two tokens per step from left to right."""

    temperature: float = 0.0

    single_path = commits_only = ends_together = True

    def __call__(self, rows: Rows) -> Iterator[Frame]:
        for step in range(1, self.max_forward_passes(rows.length) + 1):
            rows = rows.enter(slice(0, rows.length))
            draft = sample(rows, rows.slots, step, self.temperature)
            first = draft.masked.cumsum(1) <= 2
            rows = draft.write(draft.masked & first)
            yield rows.frame(step)

    def max_forward_passes(self, length: int) -> int:
        return -(-length // 2)


COMMITTING = [name for name in decoder if decoder.make(name).writer.commits_only]


@pytest.mark.parametrize("chosen", [Pairs(), *COMMITTING])
def test_every_decoder_that_only_commits_streams_text_before_its_end(model, chosen):
    inner = {"inner": decoder.make("low-confidence")} if hasattr(decoder.make(chosen), "inner") else {}  # equal samples
    blocks = resolve(decoder.make(chosen, **inner), 2, 8)
    driver, asked = Driver(model), Asked(model, "abc", decoder=blocks, length=8)
    driver.finish(asked)
    asked.check(model)
    assert any(asked.pieces[:-1])


@pytest.mark.parametrize("chosen", ["repair", "best-of(n=2, inner=repair)"])
def test_a_decoder_that_writes_again_streams_only_at_its_end(model, chosen):
    driver, asked = Driver(model), Asked(model, "abc", decoder=chosen, length=6)
    driver.finish(asked)
    assert len(asked.pieces) == 1


@pytest.mark.parametrize("chosen", [Pairs(), "low-confidence", "dream"])
def test_a_decoder_is_batched_and_stopped_by_what_it_states_about_itself(model, chosen):
    driver, every = Driver(model), ask(model, ["abc", "xyz", "hello"], decoder=chosen, length=8)
    driver.finish(*every)
    assert set(driver.forwards) == {(3, 3)}
    check(model, every)
    stop = every[0].output.text[2:4]
    stopped = Asked(model, "abc", decoder=chosen, length=8, stop=stop)
    driver.finish(stopped)
    stopped.check(model)
    assert stopped.answer.finish == "stop"
    assert stop not in stopped.answer.text
