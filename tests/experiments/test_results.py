"""Packed results lose nothing but texts, and a file of a different kind is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.experiments.made_up import results
from unmask.errors import UnmaskError
from unmask.experiments import find
from unmask.experiments.results import Results, begin, header, read_packed
from unmask.experiments.setup import TINY
from unmask.runs.store import LONG, pack, read_lines, unpack, write_lines


def test_a_packed_run_keeps_everything_but_texts():
    (run,) = results("temperature", {}, problems=9).runs.values()
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
    (run,) = results("temperature", {}, problems=9).runs.values()
    first = run.records[0].decoder
    fewer = [each for each in run.records if each.decoder != first or not each.problem.endswith(("3", "7"))]
    back = unpack(pack(replace(run, records=fewer)), "back").records
    assert [each.name for each in back] == [each.name for each in fewer]


def test_what_is_no_packed_file_is_refused(tmp_path: Path):
    (tmp_path / "x.jsonl.gz").write_bytes(b"no")
    with pytest.raises(UnmaskError, match="x"):
        read_packed(tmp_path / "x.jsonl.gz")
    with pytest.raises(UnmaskError, match="none"):
        read_lines(tmp_path / "none.gz")
    head = header(results("temperature", {}, problems=2))
    write_lines(tmp_path / "y.jsonl.gz", [{"asked": head | {"format": 9}, "measured": None}])
    with pytest.raises(UnmaskError, match="format 9"):
        read_packed(tmp_path / "y.jsonl.gz")


def test_a_different_command_may_go_on_with_a_folder(tmp_path: Path):
    for command in ("", "a different command"):
        begin(tmp_path, Results("temperature", command, TINY, find("temperature").parts(TINY)))
