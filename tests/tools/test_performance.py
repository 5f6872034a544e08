"""docs/performance.md shows the stored benchmarks."""

import json
from pathlib import Path

import pytest

from tools import performance
from unmask.bench import report
from unmask.bench.report import Results
from unmask.bench.run import BenchmarkRun, Plan
from unmask.bench.subject import Sizes, Subject
from unmask.errors import UnmaskError

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def results() -> Results:
    subject = Subject.of_shape("llada-nano", "cpu", "float32")
    plan = Plan(Sizes(prompt=4, length=8, block=4, beams=2), ("plain-ots", "ots"), (("beams", (1, 2)),), repeat=2)
    return json.loads(json.dumps(BenchmarkRun(plan, subject, note="Measured in a test.").run()))


def test_the_page_in_docs_matches_its_data(tmp_path: Path):
    performance.main(DOCS / "data" / "bench", tmp_path / "performance.md", tmp_path)
    kept = [DOCS / "performance.md", *sorted((DOCS / "data" / "bench").glob("*.svg"))]
    for path in kept:
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), f"{path.name} is stale: run `make performance`"
    assert len(list(tmp_path.iterdir())) == len(kept)


def test_a_section_names_the_machine_the_command_and_every_contender(results: Results):
    text = performance.section("nano", results)
    assert f"## llada-nano on {results['machine']['device']}" in text
    assert "Measured in a test." in text
    assert "unmask bench --shape llada-nano --device cpu" in text
    assert "--sweep beams=1,2" in text
    for trial in results["trials"]:
        assert f"| {trial['name']} |" in text
    assert "2 of 2" not in text
    assert "ots: the same tokens as the plain loop in 1 of 1 problems" in text
    assert "of 16 draws are equal" in text


def test_a_run_cut_off_early_still_makes_tables_and_a_plot(results: Results):
    cut = {**results, "trials": results["trials"][:1], "ratios": {}, "same_tokens": {}}
    assert [table.title for table in report.tables(cut)] == [report.title(cut)]
    assert report.draw(cut, "svg") == report.draw(cut, "svg")


def test_other_files_among_the_results_are_refused(tmp_path: Path):
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(UnmaskError, match=r"other\.json was not written by"):
        performance.read(tmp_path)
