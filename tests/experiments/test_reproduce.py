"""Experiments from end to end on a model of random numbers: run, killed, resumed, planned, shown."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.runs.nano import nano
from tests.tasks.conftest import data  # noqa: F401  a fixture
from unmask.errors import UnmaskError
from unmask.experiments import EXPERIMENTS, find
from unmask.experiments.experiment import Findings
from unmask.experiments.results import packed, read, read_packed
from unmask.experiments.run import Runner, plan, reproduce, totals, write_results
from unmask.experiments.setup import BENCHMARKS, TINY, Setup, setup_for
from unmask.models.checkpoints.random_weights import random_folder
from unmask.runs.engine import Local
from unmask.runs.settings import Placement
from unmask.runs.store import write_lines


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return nano(tmp_path_factory.mktemp("models") / "nano")


@pytest.fixture
def small(model: str) -> Setup:
    own = dict.fromkeys(BENCHMARKS, 8)
    sizes = {"limit": 2, "few": 2, "samples": 3, "repeats": 2}
    return replace(TINY, model=model, axis=(6, 8), own=own, seeds=(0, 1), benchmarks=("Countdown", "Sudoku"), **sizes)


def do(name: str, setup: Setup, out: Path) -> Findings:
    experiment = find(name)
    results = reproduce(experiment, setup, out, Runner(Local(), Placement("cpu")), "unmask reproduce")
    findings = experiment.findings(results)
    write_results(out, experiment, results, findings)
    return findings


SLOW = ("approximations", "case-study", "frontier", "nfe-scaling", "search-settings", "wall-time")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in EXPERIMENTS]
)
def test_an_experiment_leaves_its_tables_verdicts_and_figures(name: str, small: Setup, tmp_path: Path):
    exercises = replace(small, benchmarks=("MATH500",))
    findings = do(name, exercises if name in ("figure-1d", "block-size") else small, tmp_path)
    assert findings.tables
    assert findings.claims
    text = (tmp_path / "results.md").read_text("utf-8")
    assert text.startswith(f"# {name} (")
    for claim in findings.claims:
        assert claim.text in text
    for plot in findings.plots:
        assert (tmp_path / f"{plot.name}.svg").read_bytes().startswith(b"<?xml")
        assert (tmp_path / f"{plot.name}.png").read_bytes().startswith(b"\x89PNG")
    write_lines(tmp_path / "packed.jsonl.gz", packed(read(tmp_path)))
    again = find(name).findings(read_packed(tmp_path / "packed.jsonl.gz"))
    assert (again.tables, again.claims, again.plots) == (findings.tables, findings.claims, findings.plots)


@pytest.mark.slow
def test_the_plan_counts_the_rows_that_are_then_asked(small: Setup, tmp_path: Path):
    for name in ("table-1", "nfe-scaling", "pass-at-k", "temperature"):
        do(name, small, tmp_path / name)
        runs = read(tmp_path / name).runs.values()
        rows = sum(record.cost.forward_passes for run in runs for record in run.records)
        assert totals(plan(find(name), small, "cpu"))["forward_passes"] == rows


@pytest.mark.slow
def test_an_experiment_that_was_cut_off_goes_on_to_the_same_results(small: Setup, tmp_path: Path):
    do("nfe-scaling", small, tmp_path / "whole")
    do("nfe-scaling", small, tmp_path / "cut")
    records = tmp_path / "cut" / "countdown" / "records.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join(lines[:5]) + lines[5][:40])
    (tmp_path / "cut" / "countdown-random" / "records.jsonl").unlink()
    do("nfe-scaling", small, tmp_path / "cut")
    for name in ("results.md", "verdicts.json", "cells.csv", "nfe-scaling.svg"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_what_is_there_is_not_done_again(small: Setup, tmp_path: Path):
    do("wall-time", small, tmp_path)
    measured = (tmp_path / "measured.json").read_bytes()
    do("wall-time", small, tmp_path)
    assert (tmp_path / "measured.json").read_bytes() == measured


def test_a_folder_of_another_experiment_is_refused_with_the_difference(small: Setup, tmp_path: Path):
    do("temperature", small, tmp_path)
    with pytest.raises(UnmaskError, match=r"temperature: 1\.0 there, 0\.5 here"):
        do("temperature", replace(small, temperature=0.5), tmp_path)
    with pytest.raises(UnmaskError, match="nfe-scaling has none of the benchmarks GSM8K"):
        do("nfe-scaling", replace(small, benchmarks=("GSM8K",)), tmp_path / "other")


def test_the_plan_for_an_8b_model_needs_neither_model_nor_data(command):
    words = ("table-1", "--model", "GSAI-ML/LLaDA-8B-Instruct", "--device", "cuda", "--plan")
    code, out, _ = command("reproduce", *words, "--json")
    planned = json.loads(out)
    assert code == 0
    assert len(planned["cells"]) == 160
    assert planned["forward_passes"] > 40e6
    code, out, _ = command("reproduce", *words)
    assert out.startswith("160 cells, ")


def test_a_long_plan_ends_with_a_line_per_experiment(command):
    code, out, _ = command("reproduce", "wall-time", "case-study", "--device", "cpu", "--plan")
    assert code == 0
    assert [line.split()[:3] for line in out.split("\n\n")[1].splitlines()[3:]] == [
        ["wall-time", "16", "81,920"],
        ["case-study", "2", "6,144"],
    ]


@pytest.mark.slow
def test_a_dry_run_in_the_published_format_goes_through_every_benchmark(data: Path, command, tmp_path: Path):  # noqa: F811
    model = str(random_folder(tmp_path / "model", "llada", "tiny", dtype=torch.float32))
    words = ("table-1", "--model", model, "--data", str(data), "--allow-code", "--limit", "1", "--length", "8")
    some = ("--method", "low-confidence", "--method", "ots", "--device", "cpu", "--out", str(tmp_path))
    code, out, err = command("reproduce", *words, *some, "--json")
    assert (code, err) == (0, "")
    (table,) = json.loads(out)["experiments"]
    assert len(table["cells"]) == 2 * 4
    results = read(tmp_path / "table-1")
    assert [record.error for run in results.runs.values() for record in run.records] == [None] * 8
    assert results.setup.metric == "d1"


@pytest.mark.slow
def test_a_wording_that_is_missing_is_refused_before_anything_runs(model: str, tmp_path: Path, data: Path):  # noqa: F811
    prompts = tmp_path / "prompts.json"
    prompts.write_text('{"gsm8k": {"system": "S"}}')
    setup = setup_for(model, limit=1, lengths=[8], benchmarks=["GSM8K", "Countdown"], methods=["low-confidence"])
    runner = Runner(Local(), Placement("cpu"), prompts=str(prompts))
    with pytest.raises(UnmaskError, match="no wording of 'countdown-d1'"):
        reproduce(find("table-1"), setup, tmp_path / "out", runner, "unmask reproduce")
    assert not list((tmp_path / "out").glob("*/records.jsonl"))
    prompts = tmp_path / "both.json"
    prompts.write_text('{"gsm8k": {"system": "SYSTEM"}, "countdown-d1": {"system": "TASK"}}')
    runner = replace(runner, prompts=str(prompts))
    results = reproduce(find("table-1"), setup, tmp_path / "whole", runner, "unmask reproduce")
    prompts_seen = [run.records[0].prompt for run in results.runs.values()]
    assert sorted("TASK" in prompt for prompt in prompts_seen) == [False, True]
    with pytest.raises(UnmaskError, match="--prompts changes nothing in countdown"):
        reproduce(find("first-cell"), setup_for("tiny", limit=1), tmp_path / "tiny", runner, "unmask reproduce")
