"""Asked-for functions: the gold does what the description's reference does, near misses are caught."""

import re
from ast import literal_eval
from itertools import islice
from random import Random

import pytest

from unmask.tasks import MiniCode, Problem
from unmask.tasks.generated.countdown import evaluate
from unmask.tasks.generated.mini_code import CALLS, results
from unmask.tasks.generated.programs import FINDS, KINDS


@pytest.mark.parametrize("kind", KINDS + FINDS)
@pytest.mark.parametrize("level", MiniCode.levels)
def test_the_code_does_what_the_reference_does(kind, level):
    rng = Random(level)
    for _ in range(12):
        takes, _, body, solve, _ = kind(rng, level)
        program = "\n    ".join([f"def f({takes}):", *body])
        assert results(program, CALLS[takes]) == [repr(solve(*arguments)) for arguments in CALLS[takes]], body


def test_the_example_in_the_question_is_true():
    for problem in islice(MiniCode(level=3).problems(), 60):
        examples = re.findall(r">>> f\((.*)\)\n    (.*)\n", problem.question)
        assert len(examples) == (2 if "Find the numbers" in problem.question else 1)
        for call, result in examples:
            assert results(problem.gold, [literal_eval(f"({call},)")]) == [repr(literal_eval(result))]


def _noted(program: str, place: int) -> bool:
    return "#" in program[program.rfind("\n", 0, place) : place]


def test_the_comments_of_a_function_given_by_examples_are_true():
    given = [p for p in islice(MiniCode(level=4).problems(), 80) if "Find the numbers" in p.question]
    assert len(given) > 20
    for problem in given:
        for note in re.findall(r"# (.*)", problem.gold):
            left, right = note.split("=")
            assert evaluate(left)[0] == int(right)


def test_a_constant_off_by_one_is_nearly_always_caught():
    mini_code, rng = MiniCode(level=2), Random(0)
    missed = 0
    for problem in islice(mini_code.problems(), 150):
        spots = [spot for spot in re.finditer(r"\d+", problem.gold) if not _noted(problem.gold, spot.start())]
        if not spots:
            continue
        spot = rng.choice(spots)
        near = f"{problem.gold[: spot.start()]}{int(spot[0]) + 1}{problem.gold[spot.end() :]}"
        missed += mini_code.grade(problem, near).right
    assert missed < 10  # some are the same function: `range(8, n + 1)` with `x > 25`


def test_other_ways_to_write_it_are_right():
    problem = next(p for p in MiniCode(level=1).problems() if "Start with" in p.question and "in xs" in p.question)
    start, test = re.findall(r"t = (\d+)|if (.*):", problem.gold)
    other = f"def f(xs):\n  return {start[0]} + sum([x for x in xs if {test[1]}])"
    assert MiniCode().grade(problem, other).right
    assert MiniCode().grade(problem, f"Here it is:\n```python\n{other}\n```\nDone.").right


def test_programs_vote_together_whatever_their_blanks():
    key = MiniCode().key
    assert key("def f(n):\n    return n+1") == key("def f(n):\n  # more\n  return (n + 1)\n")
    assert key("def f(n): return n+1") != key("def f(n): return n+2")
    assert key("nothing") == "nothing"


@pytest.mark.parametrize(
    "body",
    ["while True: pass", "return [0] * 10 ** 9", "return f(xs)", "import os", "return xs.__class__", "pass"],
)
def test_hostile_programs_grade_wrong(body):
    problem = next(p for p in MiniCode().problems() if p.data["takes"] == "xs")
    grade = MiniCode().grade(problem, f"def f(xs):\n    {body}")
    assert not grade.right
    assert grade.note


@pytest.mark.parametrize("near", ["True", "(1,)", "[True]", "'[1]'", "[1][:]", "[1]"])
def test_results_must_have_the_same_type(near):
    problem = Problem("p", "", "def f(n):\n    return [1]", {"takes": "n"})
    assert MiniCode().grade(problem, f"def f(n): return {near}").right == (near in ("[1]", "[1][:]"))
