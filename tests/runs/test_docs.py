"""The page about runs explains every field of a run."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from tests.runs.nano import run_here, small_grid
from unmask.runs.record import Counts, Measured, Record

DOCS = Path(__file__).parents[2] / "docs"


def test_every_field_has_its_sentence(model: str, out: Path):
    page = (DOCS / "runs.md").read_text("utf-8")
    names = [field.name for field in fields(Record) if field.name not in ("cost", "measured")]
    names += [f"cost.{field.name}" for field in fields(Counts)]
    names += [f"measured.{field.name}" for field in fields(Measured)]
    run = run_here(small_grid(model, tasks=["countdown"], decoders=["low-confidence"], limit=1), out)
    for name in [*names, *run.head, *run.spec]:
        assert re.search(rf"^\| .*`{name}`.* \| \S", page, re.MULTILINE), f"docs/runs.md says nothing of {name}"
