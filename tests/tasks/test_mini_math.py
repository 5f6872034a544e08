"""Exercises: worked lines are true, answers are compared by value."""

import re
from fractions import Fraction
from random import Random

import pytest

from unmask.tasks import MiniMath, Problem
from unmask.tasks.generated import mini_math
from unmask.tasks.generated.mini_math import FINDS, KINDS, normal, poly

SIGNED = r"(-?\d+)"


def true(line: str) -> bool:
    left, right = line.split("=")
    if re.fullmatch(rf"{SIGNED}\*{SIGNED}\+{SIGNED}", right):
        left, right = right, left  # 482=96*5+2
    if match := re.fullmatch(rf"{SIGNED}\*{SIGNED}([+%]){SIGNED}", left):
        a, b, c = int(match[1]), int(match[2]), int(match[4])
        value = a * b + c if match[3] == "+" else a * b % c
    else:
        match = re.fullmatch(rf"{SIGNED}([-+*/%]){SIGNED}", left)
        assert match, line
        a, b = int(match[1]), int(match[3])
        value = {"+": a + b, "-": a - b, "*": a * b, "/": Fraction(a, b or 1), "%": a % (b or 1)}[match[2]]
    return value == int(right)


@pytest.mark.parametrize("kind", KINDS + FINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("level", MiniMath.levels)
def test_lines_are_true(kind, level):
    rng = Random(level)
    for _ in range(100):
        exercise = kind(rng, level)
        assert exercise.lines
        assert all(map(true, exercise.lines)), exercise


def holds(equation: str, x: int, y: int = 0) -> bool:
    """Whether an equation of ours is true, read by Python's own arithmetic."""
    plain = re.sub(r"(?<=[0-9])(?=[xy(])", "*", equation).replace("^", "**")
    left, right = plain.split("=")
    return eval(left, {"x": x, "y": y}) == eval(right, {"x": x, "y": y})


@pytest.mark.parametrize("level", MiniMath.levels)
def test_solutions_solve(level):
    rng = Random(level)
    for _ in range(50):
        for kind in (mini_math.linear, mini_math.proportion, mini_math.root):
            exercise = kind(rng, level)
            equation = next(word for word in exercise.question.split() if "=" in word)
            assert holds(equation.rstrip("."), int(exercise.answer)), exercise
        exercise = mini_math.system(rng, level)
        first, second = re.findall(r"\S+=-?\d+", exercise.question)
        x = int(exercise.answer)
        assert any(holds(first, x, y) and holds(second, x, y) for y in range(-40, 41))


@pytest.mark.parametrize("level", MiniMath.levels)
def test_what_was_found_is_the_only_answer(level):
    rng = Random(level)
    for _ in range(10):
        total, product = map(int, re.findall(r"\d+", mini_math.pair(rng, level).question))
        assert len([a for a in range(total // 2 + 1) if a * (total - a) == product]) == 1
        exercise = mini_math.split(rng, level)
        first, second = re.findall(r"\S+=\d+", exercise.question)
        found = [x for x in range(99) for y in range(99) if holds(first, x, y) and holds(second, x, y)]
        assert found == [int(exercise.answer)]
        exercise = mini_math.preimage(rng, level)
        body, value = re.findall(r"f\(x\)=(\S+?)\.", exercise.question)
        assert [x for x in range(1, 99) if holds(f"{body}={value}", x)] == [int(exercise.answer)]
        n = int(re.findall(r"\d+", mini_math.squares(rng, level).question)[1])
        assert len([a for a in range(1, 60) for b in range(a, 60) if a * a + b * b == n]) == 1


@pytest.mark.parametrize(
    ("first", "other"),
    [("13/24", "26/48"), ("x^2-2x-15", "-15 - 2x + x^2"), ("x=4", "4"), ("+4", "4"), ("2x", "x+x"), ("3", "6/2")],
)
def test_equal_answers_are_one(first, other):
    assert normal(first) == normal(other)


@pytest.mark.parametrize(
    ("first", "other"),
    [("4", "-4"), ("x^2-2x-15", "(x+3)(x-5)"), ("1/0", "1"), ("2x", "2*x*1"), ("x^2", "x2"), ("", "0"), ("x", "1")],
)
def test_other_answers_stay_apart(first, other):
    assert normal(first) != normal(other)


def test_the_last_box_counts():
    problem = Problem("mini-math-0", "", "", {"result": "12"})
    assert MiniMath().grade(problem, r"\boxed{11} no, \boxed{12}").right
    assert not MiniMath().grade(problem, r"\boxed{12} no, \boxed{11}").right
    assert not MiniMath().grade(problem, "12").right


def test_polynomials_are_written_as_people_write_them():
    assert poly([2, -3, 0, 5]) == "2x^3-3x^2+5"
    assert poly([-1, 1]) == "-x+1"
    assert poly([0, 0]) == "0"
