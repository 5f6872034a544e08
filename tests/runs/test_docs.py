"""The pages about runs say what the code does."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from tests.runs.nano import run_here, small_grid
from unmask.runs.record import Counts, Measured, Record

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)


def test_the_python_of_the_runs_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for block in blocks("runs.md"):
        exec(block, {})
    assert (tmp_path / "runs" / "python" / "run.json").exists()


def test_the_arithmetic_of_the_cluster_page_is_what_the_decoders_say(capsys: pytest.CaptureFixture[str]):
    (block,) = blocks("cluster.md")
    exec(block, {})
    assert capsys.readouterr().out.splitlines()[-1].split() == ["all", "583.4,", "both", "models", "1167"]


def test_every_field_has_its_sentence(model: str, out: Path):
    page = (DOCS / "runs.md").read_text("utf-8")
    names = [field.name for field in fields(Record) if field.name not in ("cost", "measured")]
    names += [f"cost.{field.name}" for field in fields(Counts)]
    names += [f"measured.{field.name}" for field in fields(Measured)]
    run = run_here(small_grid(model, tasks=["countdown"], decoders=["low-confidence"], limit=1), out)
    for name in [*names, *run.head, *run.spec]:
        assert re.search(rf"^\| .*`{name}`.* \| \S", page, re.MULTILINE), f"docs/runs.md says nothing of {name}"
