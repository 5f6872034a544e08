"""The text benchmarks: gold is right, noise is wrong and never raises, and the two metrics differ where they should."""

import ctypes
import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unmask.errors import UnmaskError
from unmask.tasks import Metric, Problem, task
from unmask.tasks.generated.sudoku import solutions
from unmask.tasks.published import math500
from unmask.tasks.published.math500 import normalise, same_meaning

GSM8K, MATH, COUNTDOWN, SUDOKU = (task.make(name) for name in ("gsm8k", "math500", "countdown-d1", "sudoku-d1"))
METRICS: tuple[Metric, ...] = ("ours", "d1")


def number(answer: str) -> Problem:
    return Problem("p", "q", "", {"answer": answer})


THREE = Problem("p", "q", "", {"numbers": [30, 100, 93], "target": 23})
PUZZLE = Problem("p", "q", "", {"puzzle": "3102200002100320", "solution": "3142243142131324"})


@pytest.mark.parametrize(
    ("spec", "count"),
    [("gsm8k", 1319), ("math500", 500), ("countdown-d1", 256), ("sudoku-d1", 500), ("sudoku-d1(subset=d1)", 256)],
)
def test_gold_is_right_on_every_problem(data: Path, spec: str, count: int):
    benchmark = task.make(spec)
    problems = list(benchmark.problems())
    assert len(problems) == len({problem.id for problem in problems}) == count
    assert all(benchmark.grade(problem, problem.gold).right for problem in problems)
    wrong = [problem for problem in problems if not benchmark.grade(problem, problem.gold, "d1").right]
    assert all(spec == "gsm8k" and problem.data["answer"].startswith("-") for problem in wrong)
    assert len(wrong) == (2 if spec == "gsm8k" else 0)


@pytest.mark.parametrize("spec", ["gsm8k", "math500", "countdown-d1", "sudoku-d1"])
def test_empty_and_cut_answers_are_wrong(data: Path, spec: str):
    benchmark = task.make(spec)
    for problem in list(benchmark.problems())[::50]:
        cut = problem.gold[: problem.gold.index(">") + 4]
        for text in ("", " ", "<reasoning>", "<answer></answer>", "\\boxed{}", "<answer>", "</answer>", cut):
            for metric in METRICS:
                assert not benchmark.grade(problem, text, metric).right, text


MARKS = ["\\boxed{", "}", "{", "<answer>", "</answer>", "```", "\n", " ", "-", "1,200", ".", "/", "**", "//", "(", ")"]
ODD = ["\\frac{1}{2}", "=", "%", "$", "0", "9" * 400, "1e999", "nan", "inf", "\\text{ cm}", "1234123412341234", "\0"]
ODD += ["²", "٣"]
pieces = st.lists(st.sampled_from([*MARKS, *ODD]) | st.text(max_size=5)).map("".join)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pieces)
def test_no_text_raises_and_reading_is_repeatable(text: str):
    for benchmark, problem in ((GSM8K, number("18")), (COUNTDOWN, THREE), (SUDOKU, PUZZLE)):
        for metric in METRICS:
            grade = benchmark.grade(problem, text, metric)
            assert 0 <= grade.score <= 1
            assert grade.answer == benchmark.answer(text, metric)
        assert benchmark.key(text) == benchmark.key(text)
    MATH.grade(number("18"), text, "d1")
    normalise(text)
    MATH.key(text)


@settings(max_examples=15, deadline=None)
@given(pieces)
def test_no_text_raises_when_meanings_are_compared(text: str):
    assert MATH.grade(number("\\frac{7}{13}"), f"\\boxed{{{text}}}").answer is not None


@pytest.mark.parametrize(
    ("text", "ours", "d1"),
    [
        ("\\boxed{1200}", "1200", "1200.0"),
        ("\\boxed{1,200}", "1200", "1.0"),
        ("\\boxed{\\$1{,}200.50}", "2401/2", "1.0"),
        ("\\boxed{-5}", "-5", "-5.0"),
        ("\\boxed{-\\$5}", "-5", "5.0"),
        ("\\boxed{\\frac{3}{4}}", "3/4", "3.0"),
        ("\\boxed{\\text{12 apples}} so \\boxed{12}", "12", "12.0"),
        ("\\boxed{3} then \\boxed{4}", "4", "3.0"),
        ("\\boxed{...} then \\boxed{7}", "7", "7.0"),
        ("\\boxed{} <answer>\\$18 and 20</answer>", "20", "20.0"),
        ("<answer>18 dollars</answer>", "18", "18.0"),
        ("<answer>18</answer> or rather \\boxed{19}", "19", "19.0"),
        ("<answer>it is 10-3</answer>", None, "-3.0"),
        ("\\boxed{18-5}", None, "18.0"),
        ("\\boxed{18\\frac{1}{2}}", "37/2", "18.0"),
        ("\\boxed{18 \\times 10^3}", None, "18.0"),
        ("\\boxed{- 18}", "-18", "18.0"),
        ("\\boxed{18 or 20}", None, "18.0"),
        ("\\boxed{18\\text{ or }20}", None, "18.0"),
        ("<answer>18 or 20</answer>", None, "20.0"),
        ("\\boxed{11_2}", None, "112.0"),
        ("\\boxed{3 \\cdot 6 = 18}", "18", "3.0"),
        ("\\boxed{x = 18}", "18", "18.0"),
        ("\\boxed{18 \\text{ kilowatt-hours}}", "18", "18.0"),
        ("\\boxed{\\$18 \\text{ per day}}", "18", "18.0"),
        ("\\boxed{25\\%}", "25", "25.0"),
        ("\\boxed{18 \\text{ m}^2}", "18", "18.0"),
        ("\\boxed{2^{5}}", None, "2.0"),
        ("\\boxed{10:30}", None, "10.0"),
        ("\\boxed{.5}", "1/2", "0.5"),
        ("\\boxed{18.}", "18", "18.0"),
        ("<answer>She earns 6*3 = 18 dollars.</answer>", "18", "18.0"),
        ("<answer>In 5 years he is 18</answer>", "18", "18.0"),
        ("\\boxed{18} or \\boxed{18-5}", None, "18.0"),
        ("\\boxed{\\boxed{8}}", "8", "8.0"),
        ("\\boxed{70,000 \\text{ dollars}}", "70000", "70.0"),
        ("\\boxed{18", None, None),
        ("the answer is 18", None, None),
        ("<answer>eighteen</answer>", None, None),
    ],
)
def test_numbers_are_read_from_outputs(text: str, ours: str | None, d1: str | None):
    assert GSM8K.answer(text) == ours
    assert GSM8K.answer(text, "d1") == d1


@pytest.mark.parametrize(
    ("gold", "text", "ours"),
    [("-10", "\\boxed{-10}", True), ("9007199254740993", "\\boxed{9007199254740992}", False)],
)
def test_numbers_are_compared_exactly_and_for_d1_as_floats_above_zero(gold: str, text: str, ours: bool):
    assert GSM8K.grade(number(gold), text).right == ours
    assert GSM8K.grade(number(gold), text, "d1").right != ours


@pytest.mark.parametrize(
    ("gold", "text", "ours", "d1"),
    [
        ("\\frac{14}{3}", "\\boxed{\\frac{14}{3}}", True, True),
        ("\\frac{14}{3}", "so \\boxed{\\dfrac{14}{3}}.", True, True),
        ("\\frac{1}{2}", "\\boxed{0.5}", True, True),
        ("\\frac{3}{4}", "\\boxed{3/4}", True, True),
        ("\\frac{3}{4}", "\\boxed{0.75}", True, False),
        ("2\\sqrt{3}", "\\boxed{\\sqrt{12}}", True, False),
        ("90^\\circ", "\\boxed{90}", True, True),
        ("5", "\\boxed{x=5}", True, True),
        ("5", "\\boxed{5\\text{ cm}}", True, True),
        ("\\left( 3, \\frac{\\pi}{2} \\right)", "\\boxed{(3, 0.5\\pi)}", True, False),
        ("5", "\\boxed{4} no, \\boxed{5}", True, True),
        ("5", "\\boxed{5} no, \\boxed{4}", False, False),
        ("5", "\\boxed{\\boxed{5}}", True, True),
        ("5", "<answer>5</answer>", True, False),
        ("5", "\\boxed{}<answer>5</answer>", True, True),
        ("5", "5", True, True),
        ("5", "\\boxed{5", False, False),
        ("5", "it is 5", False, False),
        ("1200", "\\boxed{1,200}", True, False),
        ("10", "\\boxed{10\\text{ or }11}", False, True),
        ("10", "\\boxed{10\\text{ and }11}", False, True),
        ("10", "\\boxed{10\\text{ 11}}", False, True),
        ("(3,4)", "\\boxed{\\{3,4\\}}", False, False),
        ("\\{3,4\\}", "\\boxed{\\left(3, 4\\right)}", False, False),
        ("3,4", "\\boxed{\\{3,4\\}}", True, False),
        ("11", "\\boxed{11_2}", False, False),
        ("11_2", "\\boxed{11_{2}}", True, False),
        ("18", "\\boxed{18-5}", False, False),
        ("18", "\\boxed{18\\frac{1}{2}}", False, False),
        ("18", "\\boxed{18 \\times 10^3}", False, False),
        ("18", "\\boxed{- 18}", False, False),
        ("5", "\\boxed{5\\text{ cm}^2}", True, True),
    ],
)
def test_latex_is_compared_by_spelling_and_by_meaning(gold: str, text: str, ours: bool, d1: bool):
    assert MATH.grade(number(gold), text).right == ours
    assert MATH.grade(number(gold), text, "d1").right == d1


def test_meaning_is_compared_from_any_thread_and_with_a_time_limit():
    answers = {"0.50": True, "10^{10^{10^{10}}}": False, "\\frac{2}{4}": True, "\\frac{": False}
    with ThreadPoolExecutor(len(answers)) as pool:
        assert list(pool.map(partial(same_meaning, "\\frac{1}{2}"), answers)) == list(answers.values())
    assert same_meaning("\\frac{1}{2}", "\\frac{2}{4}")


LIMITED = """
from unmask.tasks.published.math500 import same_meaning
for _ in range(3):
    print(same_meaning("\\\\frac{1}{2}", "0.50"), same_meaning("\\\\frac{1}{2}", "0.51"))
"""


@pytest.mark.slow
def test_a_hard_limit_of_processor_time_does_not_change_a_verdict():
    """As `ulimit -t` sets it, and too low for one process to make all comparisons."""

    def limited() -> None:
        ctypes.CDLL(None).prctl(24, 24, 0, 0, 0)  # without the right to raise limits
        resource.setrlimit(resource.RLIMIT_CPU, (18, 18))

    script, folder = [sys.executable, "-c", LIMITED], str(Path(__file__).parents[2])
    environ = os.environ | {"PYTHONPATH": folder}
    result = subprocess.run(script, capture_output=True, text=True, preexec_fn=limited, env=environ)
    assert result.stdout == "True False\n" * 3, result.stderr


def test_without_math_verify_the_refusal_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(math500, "find_spec", lambda name: None)
    with pytest.raises(UnmaskError, match=r"unmask\[math\]"):
        MATH.grade(number("5"), "\\boxed{6}")
    assert MATH.grade(number("5"), "\\boxed{5}").right


THREES = [
    ("\\boxed{30+93-100}", True, True),
    ("\\boxed{30 + 93 - 100 = 23}", True, True),
    ("<answer>(30+93)-100</answer>", True, False),
    ("\\boxed{100-30} <answer>30+93-100</answer>", False, False),
    ("\\boxed{} <answer>30+93-100</answer>", True, False),
    ("<answer>30+93-100</answer> \\boxed{93-(100-30)}", True, True),
    ("\\boxed{-100+30+93}", False, True),
    ("\\boxed{30+93-100-0}", False, False),
    ("\\boxed{30+93}", False, False),
    ("\\boxed{30+93-101}", False, False),
    ("\\boxed{30×93-100}", False, False),
    ("\\boxed{23}", False, False),
    ("\\boxed{30/0+93}", False, False),
]


@pytest.mark.parametrize(
    ("text", "ours", "d1", "numbers", "target"),
    [
        *((text, ours, d1, [30, 100, 93], 23) for text, ours, d1 in THREES),
        ("\\boxed{4 \\times (2 + 3)}", True, True, [2, 3, 4], 20),
        ("\\boxed{6 \\div 3 \\cdot 4}", True, True, [6, 3, 4], 8),
        ("\\boxed{2**3+4}", False, True, [2, 3, 4], 12),
        ("\\boxed{7//2+4}", False, True, [7, 2, 4], 7),
        ("\\boxed{99**99**99}", False, False, [99, 99, 99], 1),
        ("\\boxed{3/100000/7}", False, True, [3, 7, 100000], 0),
        ("\\boxed{123+4}", False, False, [12, 3, 4], 127),
    ],
)
def test_expressions_are_judged_exactly_by_us_and_by_python_in_d1(
    text: str, ours: bool, d1: bool, numbers: list[int], target: int
):
    problem = Problem("p", "q", "", {"numbers": numbers, "target": target})
    assert COUNTDOWN.grade(problem, text).right == ours
    assert COUNTDOWN.grade(problem, text, "d1").right == d1


GRID = "3142243142131324"


@pytest.mark.parametrize(
    "text",
    [
        f"<answer>\n```\n{GRID}\n```\n</answer>",
        f"<answer>{GRID}</answer>",
        "<answer>3142\n2431\n4213\n1324</answer>",
        f"<answer></answer> {GRID}",
        f"so {GRID} </answer>",
        f"it is {GRID}, I think",
        f"<answer>{GRID}99</answer>",
    ],
)
def test_grids_are_read_where_models_put_them(text: str):
    for metric in METRICS:
        assert SUDOKU.grade(PUZZLE, text, metric).right, metric


def test_short_grids_are_filled_with_blanks_and_score_by_cells():
    for metric in METRICS:
        grade = SUDOKU.grade(PUZZLE, f"<answer>{GRID[:8]}</answer>", metric)
        assert grade.answer == GRID[:8] + "0" * 8
        assert grade.score == 4 / 8
        assert not grade.right


def test_another_solution_is_right_for_us_and_not_for_d1():
    grids = solutions("1234000000000000")
    problem = replace(PUZZLE, data={"puzzle": "1234000000000000", "solution": grids[0]})
    assert len(grids) > 1
    text = f"<answer>{grids[1]}</answer>"
    assert SUDOKU.grade(problem, text).right
    assert SUDOKU.grade(problem, text).score == 1
    assert not SUDOKU.grade(problem, text, "d1").right


def test_a_changed_given_digit_is_wrong_for_us():
    text = "<answer>" + "1" + GRID[1:] + "</answer>"
    assert not SUDOKU.grade(PUZZLE, text).right
    assert SUDOKU.grade(PUZZLE, text, "d1").right


@pytest.mark.parametrize(
    ("benchmark", "left", "right"),
    [
        (GSM8K, "\\boxed{1,200}", "<answer>1200</answer>"),
        (MATH, "\\boxed{\\dfrac12}", "\\boxed{\\frac{1}{2}}"),
        (COUNTDOWN, "\\boxed{(30 + 93) - 100 = 23}", "<answer>30+93-100</answer>"),
        (SUDOKU, f"<answer>{GRID}</answer>", "<answer>3142 2431 4213 1324</answer>"),
    ],
)
def test_outputs_with_the_same_answer_vote_together(benchmark, left: str, right: str):
    assert benchmark.key(left) == benchmark.key(right)
    assert benchmark.key("nothing") == "nothing"
