"""Machines that share a run compute alike, or it is said that they do not."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from tests.runs.nano import run_here, small_grid
from unmask import environment
from unmask.errors import UnmaskError
from unmask.runs.header import arithmetic, contrast
from unmask.runs.worker import Worker

SMALL = {"tasks": ["countdown"], "decoders": ["low-confidence(steps=2)"], "limit": 1}


def test_a_run_records_its_arithmetic_and_says_when_it_goes_on_with_another(
    model: str, out: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    head = run_here(small_grid(model, **SMALL), out).head
    assert head["arithmetic"] == arithmetic() == Worker().facts()["arithmetic"]
    assert json.loads((out / "run.json").read_text())["arithmetic"]["instructions"]
    if not head["deterministic"]:
        return
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "DEFAULT")
    with caplog.at_level(logging.WARNING):
        run_here(small_grid(model, **SMALL), out)
    assert "different arithmetic" in caplog.text
    assert "DEFAULT here" in caplog.text


def test_workers_that_compute_differently_are_refused(monkeypatch: pytest.MonkeyPatch):
    engine = pytest.importorskip("unmask.runs.ray_engine")
    monkeypatch.setattr(environment, "deterministic", lambda: True)
    first = Worker().facts()
    other = first | {"name": "far:1", "arithmetic": {"instructions": "NO AVX", "mkl": first["arithmetic"]["mkl"]}}
    engine._check(first, first)
    with pytest.raises(UnmaskError, match=r"compute differently \(instructions .* NO AVX here\): set ATEN_CPU"):
        engine._check(other, first)


def test_equal_arithmetic_needs_no_words():
    assert contrast(arithmetic(), arithmetic()) == ""
