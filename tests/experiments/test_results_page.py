"""The results page is what the stored records say, to the byte, and packing loses nothing it needs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.experiments.made_up import evidence, small
from tools.results_page import PAGE, RECORDS, main, pages
from unmask.errors import UnmaskError
from unmask.experiments.archive import header, packed, read_packed
from unmask.experiments.methods import TEN
from unmask.runs.store import LONG, pack, read_lines, unpack, write_lines

DOCS = Path(__file__).parents[2] / "docs"


def keep(docs: Path, name: str, skill: dict[str, float]) -> None:
    invented = evidence(name, skill, small(benchmarks=("Countdown", "MATH500", "Sudoku")), problems=40)
    write_lines(docs / RECORDS / f"{name}.jsonl.gz", packed(invented))


def test_the_page_has_a_section_for_each_experiment_that_is_stored(tmp_path: Path):
    assert pages(tmp_path) == {}
    keep(tmp_path, "nfe-scaling", {})
    assert set(pages(tmp_path)) == {PAGE, "results/nfe-scaling.svg"}
    keep(tmp_path, "table-1", dict.fromkeys(TEN, 0.3) | {"ots": 0.9})
    text = pages(tmp_path)[PAGE].decode()
    assert text.index("## table-1") < text.index("## nfe-scaling")
    assert "unmask reproduce table-1" in text
    assert "float32 on a machine, torch 2; seeds 0, 1" in text
    assert re.search(r"\| \[table-1\]\(#table-1\) \| OTS has the best average of all methods .* \| ✓ holds \|", text)


def test_the_same_records_give_the_same_bytes(tmp_path: Path):
    keep(tmp_path, "block-size", {})
    keep(tmp_path, "temperature", {"ots": 0.8})
    main(tmp_path)
    again = pages(tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in again} == again


@pytest.mark.slow
def test_the_stored_page_is_not_stale():
    written = pages(DOCS)
    for name, content in written.items():
        assert (DOCS / name).read_bytes() == content, f"{name} is stale: run `make results`"
    if not written:
        assert not (DOCS / PAGE).exists()


def test_a_packed_run_keeps_everything_but_texts():
    (run,) = evidence("temperature", {}, problems=9).runs.values()
    long = replace(run.records[3], answer="x" * (LONG + 1), key="x" * (LONG + 1))
    other = replace(run.records[4], answer=None, key="a text without an answer")
    failed = replace(run.records[5], right=None, score=None, answer=None, key=None, error="no room")
    run = replace(run, records=[*run.records[:3], long, other, failed, *run.records[6:]])
    back = unpack(pack(run), "back").records
    for before, after in zip(run.records, back, strict=True):
        kept = replace(after, prompt=before.prompt, text=before.text, likelihood=before.likelihood)
        kept = replace(kept, measured=replace(kept.measured, time="now", worker="here:1"))
        if before is long:
            assert (after.answer, after.key) == (after.key, after.answer)
            assert len(after.answer or "") < LONG
            kept = replace(kept, answer=before.answer, key=before.key)
        assert kept == before


def test_problems_that_only_some_cells_have_stay_where_they_were():
    (run,) = evidence("temperature", {}, problems=9).runs.values()
    first = run.records[0].decoder
    fewer = [each for each in run.records if each.decoder != first or not each.problem.endswith(("3", "7"))]
    back = unpack(pack(replace(run, records=fewer)), "back").records
    assert [each.name for each in back] == [each.name for each in fewer]


def test_what_is_no_packed_file_is_refused(tmp_path: Path):
    (tmp_path / "x.jsonl.gz").write_bytes(b"no")
    with pytest.raises(UnmaskError, match="does not hold packed records"):
        read_packed(tmp_path / "x.jsonl.gz")
    with pytest.raises(UnmaskError, match="does not hold packed records"):
        read_lines(tmp_path / "none.gz")
    head = header(evidence("temperature", {}, problems=2))
    write_lines(tmp_path / "y.jsonl.gz", [{"asked": head | {"format": 9}, "measured": None}])
    with pytest.raises(UnmaskError, match="format 9"):
        read_packed(tmp_path / "y.jsonl.gz")
