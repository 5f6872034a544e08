"""Experiments ask for the paper's cells."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from tests.tasks.conftest import data  # noqa: F401  a fixture
from unmask.core import decoder
from unmask.errors import UnmaskError
from unmask.experiments import EXPERIMENTS, find
from unmask.experiments.run import plan, totals
from unmask.experiments.setup import PROBLEMS, PUBLISHED, TINY, Part, setup_for
from unmask.tasks import task


def names(parts: list[Part]) -> set[tuple[str, str, int]]:
    return {
        (part.benchmark, method.name, length) for part in parts for method in part.methods for length in part.lengths
    }


def test_every_experiment_has_cells_in_both_setups():
    for experiment, setup in product(EXPERIMENTS.values(), (TINY, PUBLISHED)):
        for part in experiment.parts(setup):
            for method, length in product(part.methods, part.lengths):
                assert decoder.make(method.spec).resolved(length).max_forward_passes(length) > 0


def test_two_benchmarks_with_one_task_are_asked_once():
    assert TINY.chosen("HumanEval", "MBPP") == ["HumanEval"]
    assert PUBLISHED.chosen("HumanEval", "MBPP") == ["HumanEval", "MBPP"]


def test_quick_is_small():
    small = setup_for("tiny", quick=True)
    for experiment in EXPERIMENTS.values():
        for part in experiment.parts(small):
            assert max(part.lengths) <= 64
            assert part.limit is not None
            assert part.limit <= 4
            assert part.samples <= 16
            assert all(getattr(decoder.make(method.spec), "beams", 1) <= 4 for method in part.methods)
    assert [part.benchmark for part in find("pass-at-k").parts(small)] == ["Countdown"]
    planned = [cell for each in EXPERIMENTS.values() for cell in plan(each, small, "cpu")]
    assert totals(planned)["forward_passes"] <= 24_000
    asked = setup_for("tiny", quick=True, benchmarks=["MATH500", "Sudoku"])
    counts = [len({part.benchmark for part in find("frontier").parts(setup)}) for setup in (small, asked)]
    assert counts == [1, 2]


def test_other_lengths_methods_and_benchmarks_can_be_asked_for():
    setup = setup_for("tiny", lengths=[16, 24], benchmarks=["Countdown"], methods=["ots"], limit=3)
    assert names(find("table-1").parts(setup)) == {("Countdown", "ots", 16), ("Countdown", "ots", 24)}
    assert names(find("table-2").parts(setup)) == {("Countdown", "ots", 16)}
    with pytest.raises(UnmaskError, match="did you mean 'Countdown'"):
        setup_for("tiny", benchmarks=["countdown"])
    with pytest.raises(UnmaskError, match="did you mean 'ots'"):
        find("table-1").parts(setup_for("tiny", methods=["otz"]))
    with pytest.raises(UnmaskError, match="did you mean 'table-1'"):
        find("table1")


def test_the_plan_of_table_1_is_the_cluster_page_s_arithmetic():
    cells = plan(find("table-1"), replace(PUBLISHED, seeds=(0,)), "cuda")
    assert totals(cells)["hours"] == pytest.approx(582.8, rel=0.01)


def test_the_numbers_of_problems_are_those_of_the_files(data: Path):  # noqa: F811
    for benchmark, spec in PUBLISHED.tasks.items():
        assert len(list(task.make(spec).problems())) == PROBLEMS[benchmark], benchmark


def test_the_grid_chooses_on_other_problems_than_it_tests_on():
    parts = [part for part in find("table-1").parts(setup_for("tiny", grid=True)) if " · " in part.benchmark]
    assert len(parts) == 2 * 4
    for others, tested in zip(parts[::2], parts[1::2], strict=True):
        assert "split=validation" in others.task
        assert task.spec(task.make(tested.task)).count("split=test") == 1
        assert len(others.methods) == len(tested.methods) == 15
    with pytest.raises(UnmaskError, match="no problems to choose on: those of GSM8K"):
        find("table-1").parts(replace(setup_for("GSAI-ML/LLaDA-1.5", grid=True), benchmarks=("Sudoku",)))


def test_problems_to_choose_on_are_not_the_tested_ones(data: Path):  # noqa: F811
    for others, tested in (("countdown-d1(split=train)", "countdown-d1"), ("mbpp(subset=train)", "humaneval")):
        chosen, test = ({problem.question for problem in task.make(spec).problems()} for spec in (others, tested))
        assert len(chosen) >= 256
        assert not chosen & test
