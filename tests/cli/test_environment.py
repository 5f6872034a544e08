"""Streams that accept only ASCII get substitutes, and layouts count the columns of the substitutes."""

import io
import sys

import pytest

from unmask.environment import ASCII_ERRORS, as_printed


def test_characters_are_replaced_on_an_ascii_stream(monkeypatch: pytest.MonkeyPatch):
    shown = "✓ 76−39, 50.0 ± 7.1 → 60.0, ░░=░↵"
    assert as_printed(shown) == shown
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors=ASCII_ERRORS)
    monkeypatch.setattr(sys, "stdout", stream)
    assert as_printed(shown) == "ok 76-39, 50.0 +- 7.1 to 60.0, __=_|"
    print(shown, end="", flush=True)
    assert stream.buffer.getvalue() == as_printed(shown).encode()  # pyright: ignore[reportAttributeAccessIssue]
