"""Headers of results state what ran: read from the records, and a command that plans the same experiment."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.experiments.made_up import evidence, small
from unmask.experiments import EXPERIMENTS
from unmask.experiments.archive import read_packed
from unmask.experiments.results import settings_run

DOCS = Path(__file__).parents[2] / "docs"
STORED = sorted(path.name.removesuffix(".jsonl.gz") for path in (DOCS / "data" / "results").glob("*.jsonl.gz"))
PAGE = (DOCS / "results.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("table-2", "K = 3, 5; τ = 1 (searches); L = 64"),
        ("pass-at-k", "τ = 0.8 (paths); L = 64"),
        ("temperature", "K = 1, 5; τ = 0, 1 (searches); L = 64"),
        ("first-cell", "K = 1, 5; τ = 1 (searches); L = 64"),
        ("table-1", "K = 4; τ = 1 (searches), 0, 0.7 (paths); votes of 3, 5; L = 64"),
    ],
)
def test_settings_are_those_of_the_records(name: str, words: str):
    assert settings_run(evidence(name, {}, small(benchmarks=("Countdown",)), problems=2)) == words


def section(name: str) -> str:
    return re.split(r"^## ", PAGE, flags=re.MULTILINE)[[*re.findall(r"^## (\S+)", PAGE, re.MULTILINE)].index(name) + 1]


@pytest.mark.slow
@pytest.mark.parametrize("name", STORED)
def test_every_header_of_the_page_is_what_its_records_say(name: str):
    stored = read_packed(DOCS / "data" / "results" / f"{name}.jsonl.gz")
    assert f"Model `{stored.setup.model}`; {settings_run(stored)}" in section(name)
    seeds = sorted({record.seed for run in stored.runs.values() for record in run.records})
    assert not seeds or f"seeds {', '.join(map(str, seeds))};" in section(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", STORED)
def test_every_command_of_the_page_plans_its_experiment(name: str, command):
    (line,) = re.findall(r"^unmask reproduce .*$", section(name), re.MULTILINE)
    words = shlex.split(line)[1:]
    assert name in words or "--all" in words
    code, out, err = command(*words, "--plan", "--device", "cpu", "--json")
    assert code == 0, err
    assert name in {cell["experiment"] for cell in json.loads(out)["cells"]}


def test_every_stored_experiment_is_known():
    assert set(STORED) <= set(EXPERIMENTS)
