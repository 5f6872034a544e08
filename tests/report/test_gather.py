"""Records become rows and figures: one row a spec, failures wrong, votes as the vote decoder's."""

import random

import pytest

from tests.report.examples import grid, record, run
from unmask.errors import UnmaskError
from unmask.report.gather import family, gather, natural, pass_curve, result_of, result_of_votes
from unmask.report.plots import report_plots
from unmask.report.run_report import run_report
from unmask.report.statistics import pass_at_k
from unmask.report.tables import choose_baseline, compare_with, find_series
from unmask.runs.grid import decoder_label, meaning, task_label
from unmask.runs.record import Counts


def _rows(records):
    return {row.label: row for row in gather([run(records)])[0].series}


def test_a_spec_is_one_row_whatever_its_steps_at_each_length():
    rows = _rows(grid(["low-confidence", "ots(beams=2, temperature=0.7)"], [64, 128, 256], 2))
    assert list(rows) == ["low-confidence", "order-token-search(beams=2, temperature=0.7)"]
    assert all(sorted(row.results) == [64, 128, 256] for row in rows.values())


def test_a_cell_stands_in_every_row_that_means_it():
    both = _rows(grid(["low-confidence", "low-confidence(block=16)"], [16, 64], 2))
    assert {label: sorted(row.results) for label, row in both.items()} == {
        "low-confidence": [16, 64],
        "low-confidence(block=16)": [16, 64],
    }
    one = _rows(grid(["low-confidence(block=16)"], [16, 64], 2))
    assert {label: sorted(row.results) for label, row in one.items()} == {"low-confidence(block=16)": [16, 64]}


def test_labels_are_short_and_mean_the_whole_spec():
    for spec in (
        "vote(n=3, inner=random(temperature=0.5))",
        "ots(likelihood=all-blocks)",
        "best-of(inner=ots(beams=2))",
    ):
        full = meaning(spec, 64)
        assert full is not None
        label = decoder_label(full, 64)
        assert len(label) < len(full)
        assert meaning(label, 64) == full
    assert decoder_label("gone(strength=11)", 64) == "gone(strength=11)"
    assert decoder_label("not a spec)(", 64) == "not a spec)("
    assert task_label("countdown(level=4, split=test, seed=0)") == "countdown"
    assert family("search(budget=32, block=16)") == "search(block=16)"
    assert family("vote(n=9, inner=ots(beams=2, temperature=0.7))") == ("vote(inner=ots(temperature=0.7))")


def test_an_unknown_decoder_still_has_its_row():
    rows = _rows([record(problem=i, decoder="gone(strength=11)") for i in range(3)])
    assert list(rows) == ["gone(strength=11)"]
    assert rows["gone(strength=11)"].results[64].accuracy.n == 3


def test_draws_are_averaged_within_a_problem_first():
    records = [record(problem=0, sample=i, right=i == 0, score=float(i == 0)) for i in range(4)]
    result = result_of([*records, record(problem=1, right=True, score=1.0)])
    assert result.right == {"countdown-0": 0.25, "countdown-1": 1.0}
    assert result.accuracy.value == pytest.approx(0.625)
    assert (result.accuracy.n, result.draws) == (2, 5)


def test_a_failure_counts_as_wrong_and_an_ungraded_text_not_at_all():
    broken = record(problem=0, error="killed its worker twice", right=None, score=None, key=None, cost=Counts())
    result = result_of([broken, record(problem=1, right=True), record(problem=2, right=None, score=None)])
    assert result.right == {"countdown-0": 0.0, "countdown-1": 1.0}
    assert result.failed == 1
    assert result.cost["forward_passes"] == 32  # the failure's rows are not known


def test_stored_samples_vote_by_key_seed_by_seed_and_ties_go_to_the_first():
    keys = {0: "abbca", 1: "cbbbb"}  # in seed 0 a and b tie, and a was seen first
    records = [
        record(seed=seed, sample=i, key=key, right=key == "a", score=float(key == "a"))
        for seed, word in keys.items()
        for i, key in enumerate(word)
    ]
    random.Random(0).shuffle(records)
    result = result_of_votes(records)
    assert result.right == {"countdown-0": 0.5}
    assert result.draws == 2
    assert result.cost["forward_passes"] == 5 * 32


def test_a_failure_has_no_vote():
    broken = [record(sample=i, error="lost", key=None, right=None, score=None) for i in (0, 1)]
    assert result_of_votes([*broken, record(sample=2, key="x", right=True)]).right == {"countdown-0": 1.0}
    assert result_of_votes(broken).right == {"countdown-0": 0.0}


def test_pass_at_k_pools_seeds_and_stops_at_what_every_problem_has():
    records = [record(problem=0, seed=s, sample=i, right=i == 0) for s in (0, 1) for i in range(3)]
    records += [record(problem=1, sample=i, right=False) for i in range(5)]
    curve = pass_curve(records)
    assert list(curve) == [1, 2, 4, 5]
    for k, estimate in curve.items():
        assert estimate.value == pytest.approx(pass_at_k(6, 2, k) / 2)
    assert pass_curve([]) == {}


def test_the_baseline_is_found_by_label_or_meaning_and_never_compared_with_itself():
    groups = gather([run(grid(samples=2))])
    assert choose_baseline(groups, None) == "low-confidence"
    assert choose_baseline(groups, "ots(beams=2)") == "order-token-search(beams=2)"
    assert choose_baseline(groups, "majority of 2 × random") == "majority of 2 × random"
    assert choose_baseline(gather([run(grid(["random"]))]), None) is None
    compared = {pair.series.label for pair in compare_with(groups[0], "low-confidence")}
    assert "low-confidence" not in compared
    assert "majority of 2 × low-confidence" in compared
    assert find_series(groups[0], "margin") is None


def test_decoders_that_agree_on_everything_are_still_compared():
    same = [record(spec, problem=i, right=bool(i % 2)) for spec in ("low-confidence", "margin") for i in range(6)]
    report = run_report([run(same)])
    assert [pair.series.label for pair in report.pairs] == ["margin"]
    assert (report.pairs[0].comparison.difference, report.pairs[0].comparison.p) == (0.0, 1.0)
    paired = next(table for table in report.tables if table.kind == "paired")
    assert [entry.text for entry in paired.rows[0][4:6]] == ["0.0", "–"]  # an error of 0 would claim too much
    assert "not a proof" in paired.notes[-1]


def test_a_sweep_over_beams_is_one_line_against_cost():
    specs = ["ots(beams=1)", "ots(beams=3)", "vote(n=2)", "vote(n=2, inner=random(temperature=1.0))", "low-confidence"]
    drawn = {plot.name: plot for plot in report_plots(gather([run(grid(specs, [64], 4))]))}
    assert list(drawn) == ["countdown-low-confidence-order-token-search-vote-forward-passes"]
    (plot,) = drawn.values()
    assert plot.limits is None  # alone it takes its own
    lines = {label: [point.x for point in points] for label, points in plot.lines}
    assert lines["order-token-search"] == sorted(lines["order-token-search"])
    assert len(lines["order-token-search"]) == 2
    assert {"vote(n=2)", "vote(n=2, inner=random(temperature=1.0))", "low-confidence"} < set(lines)


def test_plots_of_several_tasks_share_their_scale_and_are_named_by_task_and_decoder():
    right = {"countdown": 1, "mini-gsm": 9}
    specs = ["low-confidence", "random", "margin", "entropy"]
    records = [record(s, 64, i, of=of, right=i < n) for of, n in right.items() for s in specs for i in range(10)]
    plots = report_plots(gather([run(records)]))
    assert [plot.name for plot in plots] == [f"{task}-4-decoders-forward-passes" for task in right]
    assert plots[0].limits == plots[1].limits == pytest.approx((-5, 105))  # 10 ± 10 to 90 ± 10, and a margin


def test_the_same_record_in_two_runs_counts_once():
    records = grid(problems=5)
    twice = gather([run(records), run(records[:7], "other")])
    assert sum(len(records_of_cell) for records_of_cell in twice[0].records.values()) == len(records)


def test_runs_that_contradict_each_other_are_refused_with_the_difference():
    with pytest.raises(UnmaskError, match=r"'run' and 'other' disagree on text of problem 'countdown-0'.*\"b\""):
        gather([run([record(text="a")]), run([record(text="b")], "other")])
    with pytest.raises(UnmaskError, match="'countdown' has version 1 in 'run' and 2 in 'other'"):
        gather([run([record()]), run([record(problem=1, task_version=2)], "other")])


def test_problems_sort_as_people_count():
    assert sorted(["p-10", "p-9", "q", "p-1b"], key=natural) == ["p-1b", "p-9", "p-10", "q"]
    assert sorted(["7", "a", "٣", "²"], key=natural)  # digits of every script, and what only looks like one
