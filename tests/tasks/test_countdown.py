"""Countdown: what solves a problem and what only looks like it."""

import re

import pytest

from unmask.tasks import Countdown, Problem
from unmask.tasks.generated.countdown import ask

PROBLEM = Problem("countdown-0", ask([87, 28, 35], 94), "", {"numbers": [87, 28, 35], "target": 94})


@pytest.mark.parametrize(
    "answer",
    ["87-28+35", "(87 - 28) + 35", "35+87-28", "35-(28-87)", "87-28+35 = 94", " 87-28\n+35 "],
)
def test_any_right_expression_is_right(answer):
    assert Countdown().grade(PROBLEM, f"<answer>{answer}</answer>").right


@pytest.mark.parametrize(
    "answer",
    [
        "94",
        "87+35",
        "87-28+35+0",
        "87+28-35",
        "87-28+35*1",
        "87-28+35-0/5",
        "8 7-28+35",
        "-28+87+35",
        "94=94",
        "= 94",
    ],
)
def test_other_expressions_are_wrong(answer):
    assert not Countdown().grade(PROBLEM, f"<answer>{answer}</answer>").right


def test_an_answer_needs_its_tags():
    assert not Countdown().grade(PROBLEM, "87-28+35").right
    assert not Countdown().grade(PROBLEM, "<answer>87-28+35").right
    assert Countdown().grade(PROBLEM, "<answer>1</answer><answer>87-28+35</answer>").right


def test_expressions_vote_together_whatever_their_spaces():
    key = Countdown().key
    assert key("<answer>(87-28) + 35</answer>") == key("so: <answer>87-28+35</answer>") == "87-28+35"
    assert key("no answer") == "no answer"


def test_steps_are_positive_whole_numbers_that_chain():
    problems = Countdown(level=5).problems()
    for _ in range(100):
        problem = next(problems)
        *steps, _ = problem.gold.split("\n")
        held = list(problem.data["numbers"])
        for step in steps:
            match = re.fullmatch(r"(\d+)([-+*/])(\d+)=(\d+)", step)
            assert match
            left, right, result = int(match[1]), int(match[3]), int(match[4])
            held.remove(left)
            held.remove(right)
            held.append(result)
            assert result > 0
            wanted = {"+": left + right, "-": left - right, "*": left * right, "/": left / right}
            assert result == wanted[match[2]]
        assert held == [problem.data["target"]]
