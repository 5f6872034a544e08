"""Countdown: right and wrong expressions, exact values, and refusals that come quickly."""

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operations import operations
from unmask.tasks import Countdown, Problem
from unmask.tasks.generated.countdown import ExpressionError, ask, evaluate, tidy

PROBLEM = Problem("countdown-0", ask([87, 28, 35], 94), "", {"numbers": [87, 28, 35], "target": 94})


@pytest.mark.parametrize(
    "answer", ["87-28+35", "(87 - 28) + 35", "35+87-28", "35-(28-87)", "87-28+35 = 94", " 87-28\n+35 "]
)
def test_any_right_expression_is_right(answer):
    assert Countdown().grade(PROBLEM, f"<answer>{answer}</answer>").right


@pytest.mark.parametrize(
    "answer",
    [
        *("94", "87+35", "87-28+35+0", "87+28-35", "87-28+35*1", "87-28+35-0/5"),
        *("8 7-28+35", "-28+87+35", "94=94", "= 94"),
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


leaves = st.integers(0, 120).map(str)
expressions = st.recursive(
    leaves,
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({t[0]}{t[1]}{t[2]})"),
)


@pytest.mark.parametrize(
    ("text", "value", "used"),
    [
        ("87-28+35", 94, [87, 28, 35]),
        (" ( 87 - 28 ) + 35\n", 94, [87, 28, 35]),
        ("1-2-3", -4, [1, 2, 3]),
        ("8/3/2", Fraction(4, 3), [8, 3, 2]),
        ("8/(3/2)", Fraction(16, 3), [8, 3, 2]),
        ("2+3*4", 14, [2, 3, 4]),
        ("((7))", 7, [7]),
        ("0*5", 0, [0, 5]),
    ],
)
def test_values_are_exact(text, value, used):
    assert evaluate(text) == (value, used)


NOT_ARITHMETIC = """
|2**3|7//2|8 7|-5|3*-5|3+(-5)|+5|5-|()|(1)(2)|2(3)|(1|1)|)1(|007|1.5|1e3|٣+4|3×4|x|1/0|1/(2-2)|1;2|1_000|0x10
|1,2|__import__('os')
"""


@pytest.mark.parametrize("text", NOT_ARITHMETIC.split("|"))
def test_what_is_not_arithmetic_is_refused(text):
    with pytest.raises(ExpressionError):
        evaluate(text)


@pytest.mark.parametrize("text", ["(" * 10**6, "9" * 10**6, "1+" * 500_000 + "1", "-" * 10**6, " " * 10**6])
def test_a_million_characters_are_refused_quickly(text):
    def refuse() -> None:
        with pytest.raises(ExpressionError):
            evaluate(text)

    assert operations(refuse) < 1000


@pytest.mark.parametrize("text", ["9" * 500, "9*" * 249 + "9", "(" * 249 + "9" + ")" * 249])
def test_the_work_of_reading_grows_with_the_expression(text):
    assert operations(lambda: evaluate(text)) < 20_000


@given(expressions)
def test_tidying_keeps_value_and_numbers(text):
    try:
        value = evaluate(text)
    except ExpressionError:
        return
    tidied = tidy(text)
    assert evaluate(tidied) == value
    assert tidy(tidied) == tidied


@given(st.text(alphabet="0123456789+-*/() ", max_size=40) | st.text(max_size=40))
def test_any_text_is_evaluated_or_refused(text):
    try:
        value, used = evaluate(text)
    except ExpressionError:
        return
    assert used
    assert isinstance(value, Fraction)


def test_brackets_that_change_nothing_go():
    assert tidy("((87 - 28)) + (35)") == "87-28+35"
    assert tidy("1-(2-3)") == "1-(2-3)"
    assert tidy("1+(2-3)") == "1+2-3"
    assert tidy("2*(3+4)") == "2*(3+4)"
