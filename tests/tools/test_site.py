"""README and site: every link leads somewhere, every command and every line of Python runs, every figure is stored."""

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
from unmask.experiments.archive import read_packed
from unmask.policies.likelihood import likelihood

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
LONG = {
    "serve": "--help",
    "reproduce": "--plan",
    "lm-eval": "--help",
}  # have tests of their own: here only their words are checked
ROWS = {
    "low-confidence remasking": "low-confidence",
    "Order-Token Search, 4 beams": "ots",
    "`adaptive(sure=0.995, block=64)`, one path": "adaptive-995",
    "`search`": "search-100",
}


def blocks(text: str, kind: str) -> list[str]:
    every = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for name, block in every if name == kind]


def commands(block: str) -> list[list[str]]:
    """Each command's words; a quoted text may run over lines."""
    starts = re.split(r"^(?=unmask )", block, flags=re.MULTILINE)
    return [shlex.split(text, comments=True) for text in starts if text.startswith("unmask ")]


def headings(page: Path) -> set[str]:
    """As links name them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {"#" + re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_readme_is_short_and_its_links_lead_somewhere():
    assert len(README.splitlines()) <= 120
    links = re.findall(r"\]\(([^)#]+)(#[^)]*)?\)|(?:src|srcset)=\"([^\"]+)\"", README)
    local = {(first or last, place) for first, place, last in links if not (first or last).startswith("https://")}
    assert len(local) > 20
    assert [path for path, _ in local if not (ROOT / path).exists()] == []
    assert [(path, place) for path, place in local if place and place not in headings(ROOT / path)] == []


@pytest.mark.slow  # a search of the embedded model
@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_a_page_runs_as_it_stands(page: str, tmp_path: Path, monkeypatch, command):
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
        code, _, err = command(*words, *filter(None, [LONG.get(words[0])]))
        assert code == 0, err


@pytest.mark.slow  # 265,000 records
def test_the_figures_of_the_readme_and_of_the_choice_of_decoders_are_in_the_records():
    evidence = read_packed(ROOT / "docs/data/results/frontier.jsonl.gz")
    which = (ROOT / "docs/which.md").read_text("utf-8")
    for label, method in ROWS.items():
        cells = [evidence.accuracy(benchmark, method) for benchmark in evidence.benchmarks]
        values = [f"{100 * (each.value or 0):.1f}" for each in [*cells, evidence.average(method)]]
        rows = f"{evidence.mean_cost(method, 'forward_passes'):.0f}"
        (countdown,) = evidence.results("Countdown", method).values()
        costs = f"{rows} | {countdown.cost['forward_passes']:.0f} | {evidence.mean_cost(method, 'computed'):.0f}"
        assert f"| {label} | {' | '.join(values)} | {costs} |" in README
        assert f"| {values[-1]} | {rows} |" in which
        assert f"{100 * (evidence.average(method).error or 0):.1f}" == "0.6"


def test_the_pictures_score_texts_as_the_search_does():
    assert likelihood.make(SCORE) == BestFirstSearch().likelihood
    assert decoder.make("search") == BestFirstSearch()


@pytest.mark.slow
def test_the_site_builds_and_every_link_of_it_leads_somewhere(tmp_path: Path):
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    ran = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    index = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert "fonts.googleapis" not in index
