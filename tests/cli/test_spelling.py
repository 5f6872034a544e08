"""Streams that take ASCII alone get words, and layouts count the columns of the words."""

import io
import sys

import pytest

from unmask.ascii_output import ERRORS, spell


def test_signs_are_words_where_a_stream_takes_ascii_alone(monkeypatch: pytest.MonkeyPatch):
    shown = "✓ 76−39, 50.0 ± 7.1 → 60.0, ░░=░↵"
    assert spell(shown) == shown
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors=ERRORS)
    monkeypatch.setattr(sys, "stdout", stream)
    assert spell(shown) == "ok 76-39, 50.0 +- 7.1 to 60.0, __=_|"
    print(shown, end="", flush=True)
    assert stream.buffer.getvalue() == spell(shown).encode()  # pyright: ignore[reportAttributeAccessIssue]
