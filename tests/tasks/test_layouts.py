"""Correct programs are right in any layout, and no program forges a verdict through the helpers of its prompt."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

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
        "prompt": "from typing import List\n\n\ndef add(x: List[int]) -> int:\n    '''Add.'''\n",
        "entry_point": "add",
        "test": "def check(candidate):\n    assert candidate([1, 2]) == 3\n",
        "solution": "    return sum(x)\n",
    },
)


def holds() -> bool:
    try:
        return bool(sandbox.means())
    except UnmaskError:
        return False


def fenced(code: str) -> str:
    return f"Here it is:\n```python\n{code}\n```\nThat is all."


def needing(before: str, check: str) -> Callable[[str, str], str]:
    """The function works only if the statements before it have run."""

    def layout(code: str, entry: str) -> str:
        guard = f"\n_inner = {entry}\ndef {entry}(*args):\n    assert {check}\n    return _inner(*args)\n"
        return fenced(f"{before}\n{code}\n{guard}")

    return layout


def in_an_earlier_block(code: str, entry: str) -> str:
    wrapper = f"def {entry}(*args):\n    return _inner(*args)"
    return f"First a helper:\n{fenced(code + f'{chr(10)}_inner = {entry}')}\nThen:\n{fenced(wrapper)}"


def under_if(code: str, entry: str) -> str:
    body = "\n".join(f"    {line}" for line in code.splitlines())
    return fenced(f"if True:\n{body}\nelse:\n    {entry} = None")


POOL = """
from concurrent.futures import ThreadPoolExecutor
import threading
barrier = threading.Barrier(8)
with ThreadPoolExecutor(8) as pool:
    DONE = list(pool.map(lambda n: barrier.wait(), range(8)))
"""
DATA = (
    "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass Point:\n    x: int = 2\n"
)
PICKLE = "import pickle\nclass Box: pass\nDONE = type(pickle.loads(pickle.dumps(Box()))) is Box\n"
HINTS = "import typing\nclass Node:\n    next: 'Node'\nDONE = typing.get_type_hints(Node)\n"
LAYOUTS: dict[str, Callable[[str, str], str]] = {
    "fenced": lambda code, entry: fenced(code),
    "in prose": lambda code, entry: f"Sure, from here on it is simple.\n\n{code}\n\nI hope (really) that this helps",
    "a loop before": needing("SEEN = []\nfor n in range(3):\n    SEEN.append(n)", "SEEN == [0, 1, 2]"),
    "an import that may fail": needing("try:\n    import math as m\nexcept ImportError:\n    m = None", "m.pi > 3"),
    "an addition before": needing("COUNT = 1\nCOUNT += 1", "COUNT == 2"),
    "a call before": needing("TABLE = {}\nTABLE.update(a=1)", "TABLE"),
    "a definition under if": under_if,
    "a with before": needing("import contextlib\nwith contextlib.suppress(ValueError):\n    HERE = 1", "HERE"),
    "deeper recursion": needing("import sys\nsys.setrecursionlimit(5000)", "sys.getrecursionlimit() == 5000"),
    "a helper in an earlier block": in_an_earlier_block,
    "a dataclass, annotations postponed": needing(DATA, "Point().x == 2"),
    "pickle and type hints": needing(PICKLE + HINTS, "DONE"),
    "no-break spaces": lambda code, entry: fenced(code.replace("    ", "\u00a0\u00a0\u00a0\u00a0")),
    "a byte-order mark": lambda code, entry: "\ufeff" + fenced("\ufeff" + code),
    "a pool of threads": needing(POOL, "len(DONE) == 8"),
    "failing examples": needing(
        "open('/dev/null', 'w').write('x')\nassert False, 'an example'\nDONE = 1\nDONE += 1\ninput()", "DONE == 2"
    ),
}


def outputs(problem: Problem, solution: str) -> dict[str, str]:
    prompt, entry = problem.data["prompt"], problem.data["entry_point"]
    return {name: layout(prompt + solution, entry) for name, layout in LAYOUTS.items()}


def wrong(problems: dict[str, tuple[Problem, str]]) -> list[tuple[str, str, str]]:
    humaneval = task.make("humaneval", allow_code=True)
    trials = [(p, n, text) for p, solution in problems.values() for n, text in outputs(p, solution).items()]
    with ThreadPoolExecutor(2) as pool:
        grades = list(pool.map(lambda trial: humaneval.grade(trial[0], trial[2]), trials))
    return [(p.id, n, grade.note) for (p, n, _), grade in zip(trials, grades, strict=True) if not grade.right]


def test_a_program_is_right_in_every_layout():
    assert len(LAYOUTS) == 16
    if holds():
        assert wrong({ADD.id: (ADD, ADD.data["solution"])}) == []


@pytest.mark.slow
def test_twenty_canonical_programs_are_right_in_every_layout(data: Path):
    problems = task.make("humaneval").problems()
    chosen = {}
    for problem in list(problems)[4::8]:
        prompt = problem.data["prompt"]
        code = problem.gold[problem.gold.index(prompt) + len(prompt) : problem.gold.rindex("```")]
        chosen[problem.id] = (problem, code)
    assert len(chosen) == 20
    if holds():
        assert wrong(chosen) == []


FORGED = {
    "HumanEval/32": "def poly(xs, x):\n    return 0\ndef find_zero(xs):\n    return 0\n",
    "HumanEval/38": "def encode_cyclic(s):\n    return s\ndef decode_cyclic(s):\n    return s\n",
    "HumanEval/50": "def encode_shift(s):\n    return s\ndef decode_shift(s):\n    return s\n",
}


def test_a_program_does_not_replace_the_helpers_of_the_tests(data: Path):
    problems = {problem.id: problem for problem in task.make("humaneval").problems()}
    for name, program in FORGED.items():
        if holds():
            assert not task.make("humaneval", allow_code=True).grade(problems[name], fenced(program)).right, name


@pytest.mark.parametrize("value", ["Fraction(3, 2)", "Decimal('1.5')"])
def test_exact_numbers_equal_the_numbers_that_they_are(value: str):
    program = f"from fractions import Fraction\nfrom decimal import Decimal\ndef f(): return {value}"
    if holds():
        assert sandbox.run(sandbox.ProgramTest(program, ("assert f() == 1.5",), ("f",))).right
        assert not sandbox.run(sandbox.ProgramTest(program, ("assert f() == 2",), ("f",))).right


def test_an_unfenced_function_is_found_after_thousands_of_lines():
    text = "from here on it is simple\n" * 600 + "def f(x):\n    return x\n"
    assert read(text, "f") == "def f(x):\n    return x\n"


def test_the_work_of_finding_a_program_is_bounded(monkeypatch: pytest.MonkeyPatch):
    parsed: list[int] = []
    whole = listing.ast.parse
    monkeypatch.setattr(listing.ast, "parse", lambda text, *more: (parsed.append(len(text)), whole(text, *more))[1])
    for line in ("def f(\n", "x = (\n", "import os)\n", "class A:\n", "@f\n", "def f(x): return x +\n"):
        parsed.clear()
        listing.span(line * 5000)
        listing.head(line * 5000)
        assert sum(parsed) <= 2 * (listing.PARSED + listing.LONGEST), line
