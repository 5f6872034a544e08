"""Streamed text: certain, in whole characters, never past an end token or a stop string."""

from __future__ import annotations

import pytest

import unmask
from unmask.serve.request import RequestLimits, read_request
from unmask.serve.stream import Committed


@pytest.fixture(scope="module")
def tiny() -> unmask.Model:
    return unmask.load("tiny")


def follow(tiny: unmask.Model, answer: list[int], order: list[int], **options) -> list[str]:
    """The pieces, as the positions of an answer are written in this order."""
    request = read_request(tiny, "a", {"decoder": "low-confidence", "length": len(answer), **options}, RequestLimits())
    committed, mask = Committed(tiny, request), tiny.denoiser.mask_id
    ids, pieces = [mask] * len(answer), []
    for place in order:
        ids[place] = answer[place]
        pieces.append(committed._next(committed.text([[*request.prompt.ids, *ids]])))
    return pieces


def test_half_a_character_waits_for_the_rest(tiny):
    answer = tiny.text.encode("é☃x")
    assert len(answer) > 3
    pieces = follow(tiny, answer, list(range(len(answer))))
    assert "".join(pieces) == "é☃x"
    assert not any("\ufffd" in piece for piece in pieces)


def test_text_after_a_mask_waits(tiny):
    answer = tiny.text.encode("123")
    assert follow(tiny, answer, [2, 0, 1]) == ["", "1", "23"]


def test_nothing_follows_an_end_token(tiny):
    end = next(iter(tiny.eos))
    answer = [*tiny.text.encode("12"), end, *tiny.text.encode("3")]
    assert follow(tiny, answer, [0, 1, 3, 2]) == ["1", "2", "", ""]


def test_the_beginning_of_a_stop_string_is_held_back(tiny):
    answer = tiny.text.encode("1=2==3")
    assert len(answer) == 6
    pieces = follow(tiny, answer, list(range(6)), stop="==")
    assert "".join(pieces) == "1=2"
    assert pieces[:3] == ["1", "", "=2"]


def test_rows_that_differ_commit_what_they_share(tiny):
    request = read_request(tiny, "a", {"decoder": "ots", "length": 3}, RequestLimits())
    committed = Committed(tiny, request)
    rows = [[*request.prompt.ids, *tiny.text.encode(text)] for text in ("123", "129")]
    assert committed.text(rows) == "12"


def test_a_decoder_that_writes_again_commits_at_its_end(tiny):
    for decoder in ("repair", "best-of(n=2, inner=repair)"):
        request = read_request(tiny, "a", {"decoder": decoder, "length": 3}, RequestLimits())
        assert not Committed(tiny, request).certain
