"""The commands of docs/view.md run as they stand there, and its pictures are small."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "view.md").read_text("utf-8")


@pytest.mark.slow
def test_the_commands_run(command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL):
        words = shlex.split(block.replace("\nunmask ", " ; unmask "))
        while words:
            end = words.index(";") if ";" in words else len(words)
            code, printed, error = command(*words[1:end])
            assert code == 0, error
            assert printed
            words = words[end + 1 :]
    assert {path.name for path in tmp_path.iterdir()} == {"search.jsonl", "path.jsonl", "search.html", "both.html"}


def test_the_pictures_are_there_and_small():
    pictures = re.findall(r"!\[[^\]]+\]\((\S+)\)", PAGE)
    assert len(pictures) == 5
    for picture in pictures:
        assert (DOCS / picture).stat().st_size < 200_000
