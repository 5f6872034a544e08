"""`unmask list` says what every setting means, at any width."""

import pytest

from unmask.cli.list import COLUMN, KINDS, known, lines

ENTRIES = [entry for kind in KINDS for entry in known(kind)]


def test_every_setting_has_a_meaning():
    missing = [(entry["name"], each["name"]) for entry in ENTRIES for each in entry["settings"] if not each["meaning"]]
    assert missing == []


def test_the_words_that_a_setting_takes_are_listed():
    (ots,) = [lines(entry) for entry in ENTRIES if entry["name"] == "order-token-search"]
    assert "how a final beam is chosen (score or majority)" in ots


@pytest.mark.parametrize("width", [56, 80])
def test_a_narrow_terminal_gets_whole_words_and_an_indent(width: int):
    for entry in ENTRIES:
        wrapped = lines(entry, width)
        assert "".join(wrapped.split()) == "".join(lines(entry).split())
        assert max(map(len, wrapped.splitlines())) <= width
    (search,) = [lines(entry, 80) for entry in ENTRIES if entry["name"] == "search"]
    assert f"\n{' ' * COLUMN}what ots with 4 beams asks for\n" in search
