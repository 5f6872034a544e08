"""Experiments that were run in pieces, joined: nothing is lost, nothing is mixed."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tools.join_results import joined
from unmask.experiments.results import Results, read_packed
from unmask.runs.record import Cell, Name

RESULTS = Path(__file__).parents[2] / "docs" / "data" / "results"
SHARED = "countdown"  # the part of Table 2 whose search is also a cell of `first-cell`


@pytest.fixture(scope="module")
def whole() -> Results:
    return read_packed(RESULTS / "table-2.jsonl.gz")


def only(results: Results, *parts: str) -> Results:
    return replace(results, runs={name: run for name, run in results.runs.items() if name in parts})


def rights(results: Results, part: str) -> dict[Name, bool | None]:
    run = results.runs.get(part)
    return {record.name: record.right for record in run.records} if run else {}


def test_two_halves_are_the_whole(whole: Results):
    names = list(whole.runs)
    together = joined([only(whole, *names[::2]), only(whole, *names[1::2])])
    assert list(together.runs) == names
    assert all(together.runs[name].records == whole.runs[name].records for name in names)
    assert all(together.runs[name].spec == whole.runs[name].spec for name in names)
    for run in together.runs.values():
        counts = Counter(Cell(record.model, record.task, record.decoder, record.length) for record in run.records)
        assert {Cell(*cell): count for *cell, count in run.head["cells"]} == counts


def test_a_cell_that_another_experiment_ran_counts_too(whole: Results):
    others = [name for name in whole.runs if name != SHARED]
    together = joined([only(whole, *others), read_packed(RESULTS / "first-cell.jsonl.gz")])
    assert rights(together, SHARED) == rights(whole, SHARED) != {}


@pytest.mark.slow
def test_another_arithmetic_does_not(whole: Results):
    run = whole.runs[SHARED]
    coarse = replace(run, head=run.head | {"spec": run.spec | {"dtype": "bfloat16"}})
    others = only(whole, *(name for name in whole.runs if name != SHARED))
    together = joined([replace(others, runs={}), replace(whole, runs={SHARED: coarse}), others])
    assert SHARED not in together.runs
    assert rights(together, f"{SHARED}-fixed") == rights(whole, f"{SHARED}-fixed")


@pytest.mark.slow
def test_the_later_of_two_counts(whole: Results):
    run = whole.runs[SHARED]
    flipped = replace(run, records=[replace(record, right=not record.right) for record in run.records])
    together = joined([whole, replace(whole, runs={SHARED: flipped})])
    assert rights(together, SHARED) == {name: not right for name, right in rights(whole, SHARED).items()}
