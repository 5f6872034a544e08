"""The page about experiments says what the code does."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from unmask.experiments import EXPERIMENTS
from unmask.experiments.run import plan, totals
from unmask.experiments.setup import PUBLISHED

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reproduce.md").read_text("utf-8")
LINES = re.findall(r"^unmask reproduce .*?(?=\s+#|$)", PAGE, re.MULTILINE)


@pytest.mark.parametrize("line", LINES)
def test_every_command_can_be_planned(line: str, command, tmp_path: Path):
    words = [str(tmp_path) if word == "DIR" else word for word in shlex.split(line)][1:]
    code, out, err = command(*words, *({"--plan"} - set(words)), "--json")
    assert code == 0, err
    assert json.loads(out)["forward_passes"] > 0


def test_every_experiment_is_told_of():
    for name, experiment in EXPERIMENTS.items():
        assert f"| `{name}` | {experiment.source} |" in PAGE


def test_the_planned_hours_are_what_the_plan_says():
    told = dict(re.findall(r"^\| `([a-z0-9-]+)`(?: \([^)]*\))? \| \d+ \| [\d.]+ M \| ([\d,]+) \|$", PAGE, re.MULTILINE))
    assert len(told) == 12
    for name, hours in told.items():
        assert round(totals(plan(EXPERIMENTS[name], PUBLISHED, "cuda"))["hours"]) == int(hours.replace(",", ""))
