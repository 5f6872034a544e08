"""The rules of 4×4 Sudoku against known counts."""

import pytest

from unmask.tasks.sudoku_rules import GRIDS, fits, solutions


def test_there_are_288_grids_and_all_obey_the_rules():
    assert len(set(GRIDS)) == 288
    assert all(fits("0" * 16, grid) for grid in GRIDS)


def test_a_puzzle_has_its_solutions_and_no_others():
    puzzle = "3102200002100320"
    assert solutions(puzzle) == [grid for grid in GRIDS if fits(puzzle, grid)]
    assert len(solutions(puzzle)) == 1
    assert solutions("1100" + "0" * 12) == []


@pytest.mark.parametrize("grid", ["", "1" * 16, "3142243142131324"[:15], "3142243142131324 ", "0" * 16, "x" * 16])
def test_wrong_grids_do_not_fit(grid):
    assert not fits("3102200002100320", grid)


def test_a_given_digit_must_stay():
    assert fits("3102200002100320", "3142243142131324")
    assert not fits("4102200002100320", "3142243142131324")
