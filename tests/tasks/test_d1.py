"""Countdown and Sudoku under `d1`: every branch of the published evaluation, each example with its reason."""

from __future__ import annotations

import csv

import pytest

from tests.tasks.conftest import data  # noqa: F401  a fixture
from unmask.runs.evaluation import Evaluation
from unmask.runs.grid import make_grid
from unmask.runs.record import Measured
from unmask.runs.worker import Answer
from unmask.tasks import Problem, task

COUNTDOWN, SUDOKU = task.make("countdown-d1"), task.make("sudoku-d1")
THREE = Problem("p", "q", "", {"numbers": [30, 100, 93], "target": 23})
PUZZLE, GRID = "3102200002100320", "3142243142131324"
CELLS = Problem("p", "q", "", {"puzzle": PUZZLE, "solution": GRID})

EQUATIONS = [
    ("30+93-100", "30+93-100", True, "without a box the whole text is the equation"),
    ("30+93-100\n", "30+93-100\n", True, "line breaks around it are allowed"),
    ("<answer>30+93-100</answer>", "<answer>30+93-100</answer>", False, "the tags are part of the whole text"),
    ("<answer>30+93-100 = 23</answer>", "30+93-100", True, "an equals sign with a number picks the equation out"),
    ("30+93-100<|endoftext|>", "30+93-100<|endoftext|>", False, "an end mark is part of the whole text"),
    ("30+93-100=23<|endoftext|>", "30+93-100", True, "what follows the result is not read"),
    ("first 30+93=123, then 30+93-100=23", "30+93", False, "the first equation counts"),
    ("x=30+93-100=23", "30+93-100", True, "a letter before an equals sign is no equation"),
    ("x = 30+93-100 = 23", None, False, "but a space is one, and an empty one"),
    ("=30+93-100=23", "30+93-100", True, "nothing before an equals sign is no equation"),
    ("30+93-100=x", "30+93-100=x", False, "letters are no result"),
    ("30+93-100=-23", "30+93-100=-23", False, "a minus sign is no result"),
    ("30.0+93-100=23", "0+93-100", False, "a dot ends the characters before an equals sign"),
    ("\\boxed{30+93-100}", "30+93-100", True, "a box that balances gives its inside"),
    ("\\boxed{1} \\boxed{30+93-100}", "30+93-100", True, "the last box counts"),
    ("\\boxed{(30+93)-100} 7 <answer>1</answer>", "(30+93)-100", True, "a box comes before the tags"),
    ("\\boxed{} <answer>30+93-100</answer>", None, False, "an empty box is read as it is"),
    ("\\boxed{30+{93}-100}", "30+{93}-100", False, "inner braces stay"),
    ("\\boxed{30+93 <answer> 30+93-100 </answer>", "30+93-100", True, "an open box falls back to the tags"),
    ("\\boxed{30+93 <answer> </answer>", None, False, "empty tags are read as they are"),
    ("\\boxed{30+93-100 = 23", "30+93-100", True, "an open box without tags falls back to the whole text"),
    ("\\boxed 30+93-100$ so", "30+93-100", True, "after `\\boxed ` it reads up to a dollar sign"),
    ("\\boxed 30+93-100", "30+93-100", True, "or to the end of the text"),
    ("\\boxed 1 \\boxed{30+93-100}", "1 \\boxed{30+93-100}", False, "`\\boxed ` comes before a later box"),
    ("\\fbox{30+93-100}", "\\fbox{30+93-100}", False, "a frame keeps its command"),
    ("\\fbox{30+93-100=23}", "30+93-100", True, "but an equation is still picked out of it"),
    ("\\boxed{30 \\cdot 93 \\times 100}", "30 * 93 * 100", False, "commands become signs"),
    ("\\boxed{30+93-100\n}", "30+93-100\n", True, "white space is allowed in a box"),
    ("\\boxed{30\n+93-100}", "30\n+93-100", False, "but Python refuses a line that starts anew"),
    ("\\boxed{(30\n+93)-100}", "(30\n+93)-100", True, "except inside brackets"),
    ("\\boxed{-100+30+93}", "-100+30+93", True, "a sign before a number passes"),
    ("\\boxed{30+93-100.}", "30+93-100.", True, "Python reads 100. as a number"),
    ("\\boxed{30+93-100.0}", "30+93-100.0", False, "each run of digits is a number, so 0 is one too many"),
    ("\\boxed{93-(100-30)}", "93-(100-30)", True, "any order and brackets"),
    ("\\boxed{30+100+93}", "30+100+93", False, "another value"),
    ("\\boxed{30(93)-100}", "30(93)-100", False, "a call is an error, and an error is wrong"),
    ("\\boxed{" + "9" * 5000 + "}", "9" * 5000, False, "a number that Python refuses to read is wrong"),
]


@pytest.mark.parametrize(("text", "equation", "right", "reason"), EQUATIONS, ids=[row[-1] for row in EQUATIONS])
def test_countdown(text: str, equation: str | None, right: bool, reason: str):
    grade = COUNTDOWN.grade(THREE, text, "d1")
    assert (grade.answer, grade.right) == (equation, right), reason


ROWS = "3142\n2431\n4213\n1324"
GRIDS = [
    (f"<answer>{GRID}</answer>", GRID, 8, "the closing tag closes it"),
    (f"<answer>{GRID}<|endoftext|><|endoftext|>", GRID, 8, "end-of-text closes it"),
    (f"<answer>{GRID}<|eot_id|></answer>9", GRID, 8, "end-of-turn closes it"),
    (f"<answer>{GRID}", GRID, 8, "nothing closes it: a word of sixteen digits is left"),
    (f"<answer>{GRID[:8]}", None, 0, "nothing closes it, and no sixteen digits are left"),
    (f"<answer>{ROWS}</answer>", GRID, 8, "white space is removed"),
    (f"<answer>so:\n```\n{ROWS}\n```\n</answer>", GRID, 8, "a fence of digits comes first"),
    (f"<answer>1</answer> ```{ROWS}```", GRID, 8, "even after the closing tag"),
    (f"```{GRID}``` <answer>2</answer>", "2" + "0" * 15, 0, "a fence before the tag is not read"),
    (f"<answer>```text {GRID}```</answer>", "```text314224314", 1, "a fence with letters is not one of digits"),
    (f"<answer>``` ``` {GRID}</answer>", "``````3142243142", 3, "a blank fence is only text in the tags"),
    (f"````{GRID}``` <answer>````{GRID}```</answer>", GRID, 8, "a fourth backtick does no harm"),
    (f"<answer> </answer> {GRID}<|endoftext|>1", GRID, 8, "blank tags: what follows, up to an end mark"),
    (f"<answer></answer>\n{GRID}\n", GRID, 8, "or up to the end of the text"),
    (f"so </answer> {GRID}", GRID, 8, "a closing tag alone is enough for that"),
    (f"99{GRID}\n</answer>", GRID, 8, "sixteen digits right before a closing tag, however many come before"),
    (f"{GRID} </answer><|eot_id|>9", GRID, 8, "an end mark right after the closing tag leaves these digits"),
    (f"I think {GRID}.", GRID, 8, "any word of sixteen digits"),
    (f"I think {GRID}1.", None, 0, "a word of seventeen digits is not read"),
    (f"{'1' * 16} or {GRID}", "1" * 16, 2, "the first such word"),
    (f"<answer>{GRID[:8]}</answer>", GRID[:8] + "0" * 8, 4, "a short answer is padded with zeros"),
    (f"<answer>{GRID}99</answer>", GRID, 8, "a long answer is cut"),
    (f"<answer>{'x' * 12}{GRID[12:]}</answer>", "x" * 12 + GRID[12:], 2, "characters need not be digits"),
    (f"<answer>Answer: {GRID}</answer>", "Answer:314224314", 1, "and words take the digits' places"),
    (f"<answer>1</answer><answer>{GRID}</answer>", "1" + "0" * 15, 0, "the first tag counts"),
    ("<answer>" + "9" + GRID[1:] + "</answer>", "9" + GRID[1:], 8, "given cells are not compared"),
    (f"<answer>{PUZZLE}</answer>", PUZZLE, 0, "the puzzle itself fills no blank"),
    ("<answer></answer>", None, 0, "nothing anywhere"),
    ("", None, 0, "no text"),
    ("<|endoftext|>" * 9, None, 0, "end marks alone"),
]


@pytest.mark.parametrize(("text", "grid", "cells", "reason"), GRIDS, ids=[row[-1] for row in GRIDS])
def test_sudoku(text: str, grid: str | None, cells: int, reason: str):
    grade = SUDOKU.grade(CELLS, text, "d1")
    assert (grade.answer, grade.score) == (grid, cells / 8), reason


def test_all_puzzles_have_eight_blanks_so_a_mean_of_scores_pools_the_cells(data):  # noqa: F811
    with (data / "sudoku4x4" / "4x4_test_sudoku.csv").open() as file:
        assert {row["Puzzle"].count("0") for row in csv.DictReader(file)} == {8}


@pytest.mark.parametrize(("metric", "score"), [("d1", 1.0), ("ours", 0.0)])
def test_a_run_under_d1_reads_texts_with_their_end_marks(metric, score: float, data):  # noqa: F811
    """The record's text is cut at end-of-text, and an open tag is closed by it."""
    grid = make_grid(["toy-chain"], ["sudoku-d1"], ["low-confidence"], [32], limit=1, metric=metric)
    evaluation = Evaluation(grid)
    (job,) = evaluation.jobs(set())
    solution = SUDOKU.problems()[0].data["solution"]  # type: ignore[index]
    cut = f"<answer>{solution[:8]} {solution[8:]}"
    record = job.record(job.problems[0][0], text=cut, measured=Measured())
    record = evaluation.graded(Answer(record, uncut=cut + "<|endoftext|>"))
    assert (record.text, record.score) == (cut, score)
