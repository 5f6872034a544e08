"""The reference pages match the code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from unmask.cli.list import LISTS

ROOT = Path(__file__).parents[2]


def test_the_reference_pages_are_not_stale(tmp_path: Path):
    pages, lists = tmp_path / "pages", tmp_path / "lists.json"
    _write("--pages", pages, "--list-file", lists)
    for page in pages.iterdir():
        kept = ROOT / "docs" / "reference" / page.name
        assert kept.exists(), f"{page.name} is missing: run `make docs`"
        assert kept.read_text("utf-8") == page.read_text("utf-8"), f"{page.name} is stale: run `make docs`"
    assert json.loads(LISTS.read_text("utf-8")) == json.loads(lists.read_text("utf-8")), "lists are stale: `make docs`"


@pytest.mark.slow
@pytest.mark.parametrize(("words", "code"), [(["--help"], 0), (["somewhere"], 2), (["--pagse", "x"], 2)])
def test_a_word_it_does_not_know_writes_nothing(tmp_path: Path, words: list[str], code: int):
    assert _write(*words, check=False, cwd=tmp_path).returncode == code
    assert not list(tmp_path.iterdir())


def _write(*words: str | Path, check: bool = True, cwd: Path = ROOT) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "tools.reference", *words], check=check, cwd=cwd, env=environment, capture_output=True
    )
