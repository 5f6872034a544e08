"""The page on performance says what the stored benchmarks say, to the byte, misses included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unmask.errors import UnmaskError
from unmask.report import bench, performance
from unmask.runs.bench.bed import Bed
from unmask.runs.bench.bench import Bench
from unmask.runs.bench.plan import Plan, Sizes

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def found() -> bench.Found:
    bed = Bed.of_shape("llada-nano", "cpu", "float32")
    plan = Plan(Sizes(prompt=4, length=8, block=4, beams=2), ("plain-ots", "ots"), (("beams", (1, 2)),), repeat=2)
    return json.loads(json.dumps(Bench(plan, bed, note="Measured in a test.")()))


def test_the_page_in_docs_is_what_its_data_gives(tmp_path: Path):
    performance.main(DOCS / "data" / "bench", tmp_path / "performance.md", tmp_path)
    kept = [DOCS / "performance.md", *sorted((DOCS / "data" / "bench").glob("*.svg"))]
    for path in kept:
        made = tmp_path / path.name
        assert made.read_bytes() == path.read_bytes(), f"{path.name} is stale: run `make performance`"
    assert len(list(tmp_path.iterdir())) == len(kept)


def test_a_section_names_the_machine_the_command_and_every_contender(found: bench.Found):
    text = performance.section("nano", found)
    assert f"## llada-nano on {found['machine']['device']}" in text
    assert "Measured in a test." in text
    assert "unmask bench --shape llada-nano --device cpu" in text
    assert "--sweep beams=1,2" in text
    for trial in found["trials"]:
        assert f"| {trial['name']} |" in text
    assert "2 of 2" not in text
    assert "ots: the plain loop's tokens in 1 of 1 problems" in text
    assert "of 16 draws are equal" in text


def test_targets_are_reached_or_missed_by_what_was_measured(found: bench.Found):
    slow = {**found, "ratios": {"plain-ots / ots": {"median": 1.99, "low": 1.9, "high": 2.0, "n": 2}}}
    fast = {**found, "ratios": {"plain-ots / ots": {"median": 2.01, "low": 1.9, "high": 2.1, "n": 2}}}
    for said, met in ((slow, False), (fast, True)):
        target = next(one for one in performance.targets(said) if one.text == "plain-ots / ots")
        assert (target.bound, target.met) == ("≥ 2×", met)
    assert "| missed |" in performance.section("nano", slow)


def test_on_a_gpu_other_targets_are_spoken_of(found: bench.Found):
    gpu = json.loads(json.dumps(found))
    gpu["machine"]["kind"] = "cuda"
    gpu["ratios"] = {"ots-cached / plain-path": {"median": 1.2, "low": 1.1, "high": 1.3, "n": 2}}
    for trial in gpu["trials"]:
        trial["memory"] = 5 * 2**30
    said = {one.text: one.met for one in performance.targets(gpu)}
    assert said["ots-cached / plain-path"] is False
    assert said["memory of ots beyond the weights"] is False
    assert "plain-ots / ots" not in said


def test_a_run_cut_off_early_still_makes_tables_and_a_plot(found: bench.Found):
    cut = {**found, "trials": found["trials"][:1], "ratios": {}, "growth": [], "savings": [], "same_tokens": {}}
    assert [table.title for table in bench.tables(cut)] == [bench.title(cut)]
    assert bench.draw(cut, "svg") == bench.draw(cut, "svg")


def test_other_files_among_the_results_are_refused(tmp_path: Path):
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(UnmaskError, match=r"other\.json was not written by"):
        performance.read(tmp_path)
