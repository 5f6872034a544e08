"""README and site: every link works, every command and every line of Python runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tools.pictures import SCORE
from unmask.core import decoder
from unmask.decoders.search import BestFirstSearch
from unmask.policies.likelihood import likelihood

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
INSTEAD = {"serve": "--help", "reproduce": "--plan", "lm-eval": "--help"}  # for long commands only options are checked


def blocks(text: str, kind: str) -> list[str]:
    every = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for name, block in every if name == kind]


def commands(block: str) -> list[list[str]]:
    """Return the words of each command; a quoted text may span lines."""
    starts = re.split(r"^(?=unmask )", block, flags=re.MULTILINE)
    return [shlex.split(text, comments=True) for text in starts if text.startswith("unmask ")]


def headings(page: Path) -> set[str]:
    """Return the anchors of a page."""
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {"#" + re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_readme_is_short_and_its_links_work():
    assert len(README.splitlines()) <= 120
    links = re.findall(r"\]\(([^)#]+)(#[^)]*)?\)|(?:src|srcset)=\"([^\"]+)\"", README)
    local = {(first or last, place) for first, place, last in links if not (first or last).startswith("https://")}
    assert local
    assert [path for path, _ in local if not (ROOT / path).exists()] == []
    assert [(path, place) for path, place in local if place and place not in headings(ROOT / path)] == []


@pytest.mark.slow  # a search of the embedded model
@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_code_of_a_page_runs(page: str, tmp_path: Path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text("utf-8")
    python = blocks(text, "python")
    assert python
    for block in python:
        exec(compile(block, page, "exec"), {})
        assert "35+87-28" in block
    written = [words for kind in ("", "sh") for block in blocks(text, kind) for words in commands(block)]
    assert len(written) >= 3
    for _, *words in written:
        code, _, err = command(*words, *filter(None, [INSTEAD.get(words[0])]))
        assert code == 0, err


def test_the_pictures_score_texts_as_the_search_does():
    assert likelihood.make(SCORE) == BestFirstSearch().likelihood
    assert decoder.make("search") == BestFirstSearch()


@pytest.mark.slow
def test_the_site_builds_without_broken_links(tmp_path: Path):
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    ran = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    index = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert "fonts.googleapis" not in index
