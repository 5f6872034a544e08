"""HumanEval and MBPP: canonical programs pass, programs are found in outputs, and nothing runs unasked."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unmask.errors import UnmaskError
from unmask.tasks import Problem, task
from unmask.tasks.published import code_extraction as listing
from unmask.tasks.published.program_task import read
from unmask.tasks.sandbox import run as sandbox

ADD = Problem(
    "HumanEval/x",
    "",
    "",
    {
        "prompt": "from typing import List\n\ndef one(): return 1\n\ndef add(x: List[int]):\n    '''Add.'''\n",
        "entry_point": "add",
        "test": "def check(candidate):\n    assert candidate([1, 2]) == 3\n    assert one() == 1\n",
    },
)


def holds() -> bool:
    try:
        return bool(sandbox.means())
    except UnmaskError:
        return False


def graded(spec: str, count: int, step: int = 1) -> None:
    benchmark = task.make(spec, allow_code=True)
    problems = list(benchmark.problems())
    assert len(problems) == count
    if not holds():
        with pytest.raises(UnmaskError, match="install bubblewrap"):
            benchmark.grade(problems[0], problems[0].gold)
        return
    with ThreadPoolExecutor(2) as pool:
        grades = list(pool.map(lambda problem: benchmark.grade(problem, problem.gold), problems[::step]))
    assert [
        (problem.id, grade.note) for problem, grade in zip(problems[::step], grades, strict=True) if not grade.right
    ] == []


CANONICAL = [("humaneval", 164), ("mbpp(subset=sanitized)", 427), ("mbpp", 500)]


@pytest.mark.parametrize(("spec", "count"), CANONICAL)
def test_some_canonical_programs_pass(data: Path, spec: str, count: int):
    graded(spec, count, step=25)


@pytest.mark.slow
@pytest.mark.parametrize(("spec", "count"), CANONICAL)
def test_every_canonical_program_passes(data: Path, spec: str, count: int):
    graded(spec, count)


def test_programs_are_not_run_unasked():
    benchmark = task.make("humaneval")
    with pytest.raises(UnmaskError, match="--allow-code"):
        benchmark.grade(ADD, "```python\ndef add(x): return sum(x)\n```")
    assert not benchmark.grade(ADD, "").right


RIGHT = [
    "```python\ndef add(x: List[int]) -> int:\n    return sum(x)\n```",
    "<answer>\n```\ndef add(x):\n    return sum(x)\n```\n</answer>",
    "```python\ndef add(x):\n    return 0\n```\nbetter:\n```python\ndef add(x):\n    return sum(x)\n```\nuse it:\n"
    "```python\nprint(add([1]))\n```",
    "Sure!\n\ndef helper(x):\n    return sum(x)\n\ndef add(x):\n    return helper(x)\n\nThat's all (I hope).",
    "    return sum(x)\n",
    "    total = 0\n    for y in x:\n        total += y\n    return total\n\nThis works because",
    "```python\ndef add(x):\n    return sum(x)\nassert add([1]) == 2\nwhile True: pass\n```",
]
WRONG = [
    "",
    "I cannot.",
    "```python\ndef add(x):\n    return 0\n```",
    "```python\ndef sub(x):\n    return 3\n```",
    "def add(x):\n    return su",
]


@pytest.mark.parametrize("text", RIGHT)
def test_a_program_is_found_in_an_output(text: str):
    if holds():
        grade = task.make("humaneval", allow_code=True).grade(ADD, text)
        assert grade.right, grade


@pytest.mark.parametrize("text", WRONG)
def test_no_program_or_another_is_wrong(text: str):
    if holds():
        assert not task.make("humaneval", allow_code=True).grade(ADD, text).right


def test_the_grade_says_when_it_ran_with_less():
    benchmark = task.make("humaneval", allow_code=True, sandbox="rlimits")
    grade = benchmark.grade(ADD, RIGHT[0])
    assert grade.right
    assert grade.note == "ran under rlimits only"


def test_mbpp_reads_its_own_marks():
    assert read("[BEGIN]\ndef f(x):\n    return x\n[DONE]") == "def f(x):\n    return x"


def test_programs_that_differ_in_layout_vote_together():
    benchmark = task.make("mbpp")
    first, other = "```python\ndef f( x ):\n    # a thought\n    return x\n```", "```\ndef f(x): return x\n```"
    assert benchmark.key(first) == benchmark.key(other)
    assert benchmark.key("nothing") == "nothing"


words = st.sampled_from(
    [
        "def f(x):",
        "\n",
        "    ",
        "return x",
        "```",
        "```python\n",
        "[BEGIN]",
        "[DONE]",
        "(",
        "import os",
        "class A:",
        '"""',
        "\0",
        "\\d",
        "@",
        "x = ",
        "-" * 50,
    ]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(words | st.text(max_size=4)).map("".join))
def test_reading_never_raises(text: str):
    program = read(text, "f")
    assert program is None or isinstance(program, str)
    listing.tidy(text)
    for name in ("humaneval", "mbpp"):
        task.make(name).key(text)
    task.make("humaneval").program_test(ADD, text)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    ["def f(x):\n" * 2000, "(" * 100_000, "x = (\n" * 4000, "-" * 20_000 + "1", "x" + ".a" * 9000, "```\n" * 5000],
)
def test_hostile_listings_are_read_quickly(text: str):
    read(text, "f")
    task.make("mbpp").key(text)
