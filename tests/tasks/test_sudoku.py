"""Sudoku: whole grids by the rules, cells by share."""

from unmask.tasks import Problem, Sudoku
from unmask.tasks.generated.sudoku import UNITS, ask, grids, solutions

PUZZLE, SOLUTION = "3102200002100320", "3142243142131324"
PROBLEM = Problem("sudoku-0", ask(PUZZLE), "", {"puzzle": PUZZLE})


def test_the_score_counts_blank_cells_only():
    grade = Sudoku().grade(PROBLEM, f"<answer>{PUZZLE}</answer>")
    assert (grade.right, grade.score) == (False, 0)
    half = SOLUTION[:4] + PUZZLE[4:]
    assert Sudoku().grade(PROBLEM, f"<answer>{half}</answer>").score == 1 / 8


def test_a_changed_given_digit_is_wrong_though_blanks_are_right():
    changed = "1" + SOLUTION[1:]
    grade = Sudoku().grade(PROBLEM, f"<answer>{changed}</answer>")
    assert (grade.right, grade.score) == (False, 1)


def test_rows_may_stand_on_lines_of_their_own():
    rows = "3142\n2431\n4213\n1324"
    assert Sudoku().grade(PROBLEM, f"<answer>\n{rows}\n</answer>").right
    assert Sudoku().key(f"<answer>{rows}</answer>") == SOLUTION


def test_grids_of_another_size_are_no_answer():
    for grid in (SOLUTION[:15], SOLUTION + "1", "٣" * 16, "x" * 16):
        assert Sudoku().answer(f"<answer>{grid}</answer>") is None


def test_puzzles_have_a_solution_and_the_blanks_of_their_level():
    for level in Sudoku.levels:
        problem = next(Sudoku(level=level).problems())
        assert solutions(problem.data["puzzle"])
        assert problem.data["puzzle"].count("0") == level


def test_every_solution_of_a_puzzle_is_right():
    problem = next(p for p in Sudoku(level=13).problems() if len(solutions(p.data["puzzle"])) > 1)
    for grid in solutions(problem.data["puzzle"]):
        assert Sudoku().grade(problem, f"<answer>{grid}</answer>").score == 1
        assert Sudoku().grade(problem, f"<answer>{grid}</answer>").right


def test_there_are_288_grids_and_all_obey_the_rules():
    assert len(set(grids())) == 288
    assert all({grid[cell] for cell in unit} == set("1234") for grid in grids() for unit in UNITS)


def test_a_puzzle_has_its_solutions_and_no_others():
    assert solutions("3102200002100320") == ["3142243142131324"]
    assert solutions("4102200002100320") == []
    assert solutions("1100" + "0" * 12) == []
