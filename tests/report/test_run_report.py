"""A report says where its figures come from and what is missing, and claims no more than they can carry."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.examples import grid, record, run
from unmask.report.run_report import run_report
from unmask.report.statistics import holm, wilson


def partial(records, planned: int):
    cells = [[*cell, planned] for cell in dict.fromkeys(each.cell for each in records)]
    head = {"format": 1, "unmask": "0.1", "created": "2026-01-02", "command": "unmask eval -m tiny", "cells": cells}
    return replace(run(records), head=head | {"spec": {}, "machine": {"platform": "Linux", "torch": "2.13"}})


def test_a_run_that_is_not_finished_says_what_it_lacks_in_every_form():
    records = grid(["low-confidence", "random"], [64], problems=3)
    report = run_report([partial(records[:-1], planned=3)])
    table = report.tables[0]
    assert table.title == "incomplete: 5 of 6 records"
    assert [[cell.text for cell in row] for row in table.rows] == [["random", "countdown", "64", "tiny", "2 of 3"]]
    (source,) = report.json()["runs"]
    assert (source["complete"], source["records"], source["planned"]) == (False, 5, 6)
    assert source["missing"][0]["records"] == 2
    page = report.html()
    assert "incomplete: 5 of 6 records" in page
    assert "unmask eval -m tiny" in page
    assert "2026-01-02" in page
    assert "torch 2.13" in page


def test_the_last_command_of_a_run_that_grew_completes_it():
    unfinished = partial(grid(["low-confidence"], [64], problems=2), planned=3)
    assert run_report([unfinished]).tables[0].notes[1] == "This completes run: unmask eval -m tiny"
    unfinished.head["grown"] = [{"created": "2026-01-03", "command": "unmask eval -m tiny --limit 3"}]
    report = run_report([unfinished])
    assert report.tables[0].notes[1] == "This completes run: unmask eval -m tiny --limit 3"
    assert "<dt>command of 2026-01-03</dt><dd><code>unmask eval -m tiny --limit 3</code>" in report.html()
    unfinished.head["grown"].append({"created": "2026-01-04", "command": ""})  # from Python
    assert len(run_report([unfinished]).tables[0].notes) == 1


def test_a_finished_run_lacks_nothing_and_a_header_without_a_plan_says_nothing():
    records = grid(["low-confidence", "random"], [64], problems=3)
    assert run_report([partial(records, planned=3)]).tables[0].kind == "accuracy"
    old = run_report([run(records)])
    assert old.tables[0].kind == "accuracy"
    assert old.json()["runs"][0]["planned"] is None


def test_where_all_problems_agree_an_interval_stands_in_for_an_error_of_zero():
    records = [record(problem=number, right=False, score=0.0) for number in range(4)]
    (table,) = run_report([run(records)]).tables
    assert table.rows[0][1].text == "0.0 (0–49)"
    cell = run_report([run(records)]).json()["cells"][0]
    assert cell["high"] == pytest.approx(0.4899, abs=1e-4)


def test_wilson_s_interval_holds_its_share_and_narrows_with_n():
    assert wilson(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    for share in (0.0, 0.3, 1.0):
        low, high = wilson(share, 7)
        assert 0 <= low <= share <= high <= 1
        assert wilson(share, 700)[1] - wilson(share, 700)[0] < high - low


def test_bold_is_for_rows_with_the_same_problems():
    same = grid(["low-confidence", "random"], [64], problems=8)
    assert any(cell.rank for row in run_report([run(same)]).tables[0].rows for cell in row)
    other = [each for each in same if not (each.decoder.startswith("random") and each.problem == "countdown-0")]
    assert not any(cell.rank for row in run_report([run(other)]).tables[0].rows for cell in row)


def test_comparisons_of_one_table_are_corrected_together():
    report = run_report([run(grid(["low-confidence", "random", "ots(beams=2)"], [64], problems=30))])
    against = [cell["against"] for cell in report.json()["cells"] if cell["against"]]
    assert [each["p_corrected"] for each in against] == holm([each["p"] for each in against])
    (table,) = [table for table in report.tables if table.kind == "paired"]
    assert "corrected for 2 comparisons (Holm)" in table.notes[0]
