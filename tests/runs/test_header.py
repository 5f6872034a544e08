"""A run grows in its folder, keeps what it holds, and warns or refuses where machines compute differently."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.runs.nano import run_here, small_grid
from unmask import environment
from unmask.errors import UnmaskError
from unmask.runs.engine import make_engine
from unmask.runs.evaluation import evaluate
from unmask.runs.grid import make_grid
from unmask.runs.header import arithmetic
from unmask.runs.store import read_run
from unmask.runs.worker import Worker
from unmask.tasks.generated.countdown import Countdown

SMALL = {"tasks": ["countdown"], "decoders": ["low-confidence(steps=2)"], "limit": 1}


def grown(out: Path, limit: int = 2, decoders: tuple[str, ...] = ("low-confidence",), **more: Any) -> Any:
    seen: list[tuple[int, int, int]] = []
    grid = make_grid(["toy-chain"], ["countdown"], decoders, [4], limit=limit, **more)
    run = evaluate(
        grid, out, make_engine("local"), watch=lambda records, done, of: seen.append((len(records), done, of))
    )
    return run, seen


def test_more_problems_and_decoders_join_what_is_there(tmp_path: Path):
    out = tmp_path / "run"
    grown(out)
    before = (out / "records.jsonl").read_bytes()
    run, seen = grown(out, limit=5)
    assert (out / "records.jsonl").read_bytes().startswith(before)
    assert seen[0] == (2, 2, 5)
    assert seen[-1][1:] == (5, 5)
    assert all(done <= of for _, done, of in seen)
    run, seen = grown(out, limit=5, decoders=("low-confidence", "random"), seeds=(0, 3))
    assert len(run.records) == 20
    assert len(run.head["grown"]) == 2
    whole, _ = grown(tmp_path / "whole", limit=5, decoders=("low-confidence", "random"), seeds=(0, 3))
    assert [each.lasting() for each in whole.records] == [each.lasting() for each in run.records]


def test_a_smaller_or_different_run_is_refused(tmp_path: Path):
    out = tmp_path / "run"
    grown(out, limit=3, decoders=("low-confidence", "random"))
    before = (out / "run.json").read_bytes()
    others: list[tuple[dict[str, Any], str]] = [
        ({"limit": 2}, r" \(limit: 3 there, 2 here; random not named here\)"),
        ({"limit": 9, "decoders": ("random",)}, ": name low-confidence too"),
        ({"decoders": ("margin",), "seeds": (1,)}, r" \(limit: 3 .*low-confidence, random and seed 0 not named here\)"),
        ({"limit": 9, "metric": "d1", "decoders": ("margin",)}, r" \(metric: ours there, d1 here; low-confidence and"),
    ]
    for other, sentence in others:
        with pytest.raises(UnmaskError, match="holds a different run" + sentence):
            grown(out, **other)
    assert (out / "run.json").read_bytes() == before


def test_a_larger_limit_over_different_problems_is_a_different_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    out, problems = tmp_path / "run", Countdown.problems
    grown(out)

    def shifted(self: Countdown):
        every = problems(self)
        next(iter(every))
        return every

    monkeypatch.setattr(Countdown, "problems", shifted)
    with pytest.raises(
        UnmaskError, match=r"\(problems of countdown: count 2, digest \w+ there, count 2, digest \w+ here"
    ):
        grown(out, limit=5)
    assert len(read_run(out).records) == 2


def test_a_run_records_its_arithmetic_and_warns_when_it_is_resumed_with_a_different_one(
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
    with pytest.raises(UnmaskError, match=r"compute differently \(instructions: .* NO AVX here\): set ATEN_CPU"):
        engine._check(other, first)
