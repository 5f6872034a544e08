"""Laws of every generated family at every level."""

import re
from itertools import islice
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.errors import UnmaskError
from unmask.tasks import Problem, Split, task
from unmask.tasks.generated.base import HELD_OUT, Generated, mark_of, split_of

FAMILIES = ["countdown", "mini-code", "mini-gsm", "mini-math", "sudoku"]
LEVELS = [(name, level) for name in FAMILIES for level in task.find(name).levels]  # type: ignore[attr-defined]
LONGEST_GOLD = {"countdown": 64, "sudoku": 48, "mini-gsm": 96, "mini-math": 110, "mini-code": 128}
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
HOSTILE = [
    "",
    " ",
    "\n",
    "<answer></answer>",
    "<answer>",
    "</answer>",
    "\\boxed{}",
    "\\boxed{",
    "def",
    "def f",
    "def f():",
]
HOSTILE += ["<answer>" * 10_000, "</answer>" * 10_000, "\\boxed{" * 10_000, "(" * 10**6, "9" * 10**6, "def " * 10**5]
HOSTILE += ["<answer>" + "9" * 10**5 + "</answer>", "\\boxed{" + "9" * 10**5 + "}", "\\boxed{1/0}", "\\boxed{x^9x^9}"]
HOSTILE += [
    "<answer>1/0</answer>",
    "<answer>٣</answer>",
    "<answer>\0</answer>",
    "\ud800",
    "```python\n```",
    "```" * 10_000,
]


def family(name: str, level: int | None = None, split: Split = "test", seed: int = 0) -> Generated:
    generated = task.make(name, split=split, seed=seed, **({} if level is None else {"level": level}))
    assert isinstance(generated, Generated)
    return generated


def canonical(name: str, problem: Problem) -> str:
    """Return what a problem is, read from its text alone: two texts of the same problem must not be in two splits."""
    if name == "countdown":
        *numbers, target = re.findall(r"\d+", problem.question)
        return f"{sorted(map(int, numbers))} {target}"
    if name == "mini-gsm":
        return problem.gold.rpartition("\n")[0]
    if name == "mini-code":
        text, *_ = problem.question.split(">>>")
        return problem.question if "Find the numbers" in text else text
    return " ".join(problem.question.split())


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_gold_grades_right(name, level):
    generated = family(name, level, "train")
    rng = Random(level)
    for _ in range(150):
        problem = generated.draw(rng)
        grade = generated.grade(problem, problem.gold)
        assert grade.right, (problem, grade)
        assert grade.score == 1
        assert generated.grade(problem, f"  {problem.gold}\n").right


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_texts_are_short_and_plain(name, level):
    generated = family(name, level, "train")
    for problem in islice(generated.problems(), 150):
        size = len(re.findall(r"\d|</?answer>| ?[A-Za-z]+|\\boxed|\n *|.", problem.gold))
        assert size <= LONGEST_GOLD[name]
        assert problem.gold.isascii()
        assert problem.question.isascii()
        assert generated.messages(problem) == [{"role": "user", "content": problem.question}]


@pytest.mark.parametrize("name", FAMILIES)
def test_equal_settings_yield_equal_problems_none_twice(name):
    first, again = (list(islice(family(name).problems(), 60)) for _ in range(2))
    assert first == again
    assert len({problem.id for problem in first}) == 60
    other = list(islice(family(name, seed=1).problems(), 60))
    assert {problem.id for problem in first} != {problem.id for problem in other}


@pytest.mark.slow
def test_a_small_level_ends():
    puzzles = list(family("sudoku", 12, "validation").problems())
    assert len({problem.id for problem in puzzles}) == len(puzzles) > 1000


@pytest.mark.parametrize("name", FAMILIES)
def test_cut_off_gold_grades_wrong(name):
    generated = family(name)
    rng = Random(3)
    for problem in islice(generated.problems(), 40):
        cut = problem.gold[: rng.randrange(len(problem.gold))]
        assert not generated.grade(problem, cut).right, (problem, cut)


@pytest.mark.parametrize("name", FAMILIES)
def test_hostile_answers_grade_wrong(name):
    generated = family(name)
    problem = next(iter(generated.problems()))
    for text in HOSTILE:
        grade = generated.grade(problem, text)
        assert not grade.right
        assert grade.note
        assert generated.key(text) is not None


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=200) | st.text("0123456789+-*/()<>answer{}\\boxed \n:=defx[]", max_size=80))
def test_any_answer_is_graded(name, text):
    generated = family(name)
    problem = next(iter(generated.problems()))
    for output in (text, f"<answer>{text}</answer>", f"\\boxed{{{text}}}", f"def f(xs):\n return {text}"):
        assert 0 <= generated.grade(problem, output).score <= 1
        assert isinstance(generated.key(output), str)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_gold_of_a_different_problem_is_wrong(name):
    generated = family(name)
    first, *others = islice(generated.problems(), 9)
    other = next(p for p in others if p.gold.split("\n")[-1] != first.gold.split("\n")[-1])
    assert not generated.grade(first, other.gold).right


def disjoint(name: str, level: int, train: int, others: int) -> None:
    forms: dict[Split, set[int]] = {}
    for split in SPLITS:
        generated, rng = family(name, level, split), Random(17)
        count = train if split == "train" else others
        forms[split] = {hash(canonical(name, generated.draw(rng))) for _ in range(count)}
    assert not forms["train"] & forms["validation"]
    assert not forms["train"] & forms["test"]
    assert not forms["validation"] & forms["test"]


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_splits_are_disjoint(name, level):
    disjoint(name, level, 1500, 150)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_splits_are_disjoint_over_a_million_draws(name):
    disjoint(name, task.find(name)().level, 900_000, 50_000)  # type: ignore[attr-defined]


def test_a_twentieth_is_test_and_a_twentieth_validation():
    rng, generated = Random(0), family("mini-math")
    splits = [split_of(mark_of("mini-math", generated.sketch(rng).form)) for _ in range(4000)]
    assert 130 < splits.count("test") < 270
    assert 130 < splits.count("validation") < 270


def test_published_problems_are_never_trained_on():
    assert len(HELD_OUT) == 756
    assert all(split_of(mark) == "test" for mark in HELD_OUT)


@pytest.mark.parametrize("name", FAMILIES)
def test_levels_and_splits_out_of_range_are_refused(name):
    with pytest.raises(UnmaskError, match="level"):
        task.make(f"{name}(level=99)")
    with pytest.raises(UnmaskError, match="split"):
        task.make(f"{name}(split=tests)")


@pytest.mark.parametrize("name", FAMILIES)
def test_a_task_is_made_from_its_spec(name):
    generated = family(name, seed=4)
    assert task.make(task.spec(generated)) == generated
