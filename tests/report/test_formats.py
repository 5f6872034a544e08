"""A report is a function of what was recorded: not of the order, the folders, or what was measured."""

import json
import random
from dataclasses import replace

import pytest

from tests.report.examples import grid, record, run
from unmask.report.gather import visible
from unmask.report.run_report import RunReport, run_report
from unmask.report.tables import BEST, SECOND, signed
from unmask.runs.record import Measured


def _forms(report: RunReport) -> dict[str, str]:
    """Apart from the runs it names."""
    report = replace(report, sources=())
    return {"md": report.markdown(), "csv": report.csv(), "html": report.html(), "json": json.dumps(report.json())}


def test_shuffled_records_in_other_folders_with_other_timings_give_the_same_bytes():
    records = grid(problems=6, samples=3) + grid(["low-confidence", "margin"], problems=6, of="mini-gsm")
    first = _forms(run_report([run(records)]))
    measured = Measured(1, 99.0, 7, "1970-01-01T00:00:00Z", "elsewhere:2", 64)
    mixed = [replace(one, measured=measured) for one in records]
    random.Random(3).shuffle(mixed)
    assert _forms(run_report([run(mixed[:50], "b"), run(mixed[50:], "a")])) == first
    assert "99.0" not in first["html"]


@pytest.mark.slow
def test_plots_are_the_same_bytes_and_hold_no_date():
    report = run_report([run(grid(["low-confidence", "random"], problems=6, samples=2))])
    images = report.images()
    assert set(images) == {
        f"countdown-low-confidence-random-{what}.{kind}"
        for what in ("forward-passes", "length", "pass-64", "pass-128")
        for kind in ("svg", "png", "pdf")
    }
    again = run_report([run(grid(["low-confidence", "random"], problems=6, samples=2))]).images()
    assert images == again
    for name, image in images.items():
        assert image.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[name[-3:]])
        assert b"CreationDate" not in image
        assert b"<dc:date>" not in image
        assert b"Software" not in image


def test_timing_is_shown_only_where_it_was_asked_for():
    kinds = {table.kind for table in run_report([run(grid(problems=4))]).tables}
    assert kinds == {"accuracy", "paired"}
    timed = run_report([run(grid(problems=4))], timing=True).tables
    assert timed[-1].kind == "timing"


def test_the_best_is_bold_and_the_second_underlined_in_every_column():
    right = {"low-confidence": 1, "random": 0, "margin": 3, "entropy": 3}
    records = [record(spec, 64, i, right=i < n) for spec, n in right.items() for i in range(4)]
    report = run_report([run(records)])
    ranks = {entries[0].text: entries[1].rank for entries in report.tables[0].rows}
    assert ranks == {"margin": BEST, "entropy": BEST, "low-confidence": SECOND, "random": 0}
    assert "| margin | **75.0 ± 25.0** |" in report.markdown()
    assert "| low-confidence | <u>25.0 ± 25.0</u> |" in report.markdown()


def test_a_lonely_or_level_column_has_no_best():
    report = run_report([run([record(problem=i, right=True) for i in range(3)])])
    assert "**" not in report.markdown().partition("##")[2]


def test_averages_over_tasks_need_every_task():
    records = grid(["low-confidence", "random"], [64], 5) + grid(["low-confidence"], [64], 5, of="mini-gsm")
    table = next(table for table in run_report([run(records)]).tables if table.kind == "average")
    assert table.head == ("decoder", "countdown", "mini-gsm", "average")
    by_label = {entries[0].text: [entry.text for entry in entries[1:]] for entries in table.rows}
    assert by_label["random"][1:] == ["–", "–"]
    assert "–" not in by_label["low-confidence"]


def test_scores_that_count_parts_have_a_table_of_their_own():
    records = [record(problem=i, right=False, score=0.5) for i in range(4)]
    kinds = [table.kind for table in run_report([run(records)]).tables]
    assert kinds == ["accuracy", "parts"]


def test_notes_say_what_a_reader_must_know():
    uneven = [*grid(["low-confidence"], [64], 4), *grid(["random"], [64], 3)]
    notes = run_report([run([*uneven, record(problem=9, error="lost", right=None)])]).tables[0].notes
    assert any("different problems" in note for note in notes)
    assert "1 record failed: wrong in every figure." in notes


def test_unusual_settings_are_said_beside_the_figures():
    one = run(grid(problems=3))
    one.head["spec"] |= {"early_end": True, "guidance": 1.5}
    assert run_report([one]).tables[0].notes[0] == "Run with guidance=1.5, early_end. Early end is approximate."
    one.head["spec"] |= {"early_end": False, "guidance": 0.0, "cache": "dual"}
    assert run_report([one]).tables[0].notes[0] == "Run with cache=dual. A cache is approximate."


@pytest.mark.parametrize("bad", ["\x1b[2J", "\u202e", "\r", "\ud800"])
def test_names_cannot_steer_a_terminal(bad: str):
    assert bad not in visible(f"a{bad}b")


def test_markdown_and_csv_hold_hostile_names_as_text():
    report = run_report([run([record(problem=i, model="a|b`<i>*\n=1,2") for i in range(2)])])
    assert "a\\|b\\`\\<i\\>\\*□=1,2" in report.markdown()
    assert '"a|b`<i>*\n=1,2"' in report.csv()


def test_a_difference_of_nothing_has_no_sign():
    assert [signed(value) for value in (0.0, -0.0001, 0.0123, -0.05)] == ["0.0", "0.0", "+1.2", "−5.0"]
