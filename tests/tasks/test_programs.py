"""HumanEval and MBPP: canonical programs pass, and programs are found in outputs of any layout."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unmask.errors import UnmaskError
from unmask.tasks import Problem, task
from unmask.tasks.published import programs
from unmask.tasks.published.programs import LONGEST, PARSED, longest_beginning, longest_span, read, tidy
from unmask.tasks.sandbox.run import ProgramTest, run

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


def wrong(spec: str, trials: list[tuple[Problem, str]]) -> list[tuple[str, str, str]]:
    """Return the id, the output and the note of every output that is graded wrong."""
    benchmark = task.make(spec, allow_code=True)
    with ThreadPoolExecutor(2) as pool:
        grades = list(pool.map(lambda trial: benchmark.grade(*trial), trials))
    return [(p.id, text, grade.note) for (p, text), grade in zip(trials, grades, strict=True) if not grade.right]


CANONICAL = [("humaneval", 164), ("mbpp(subset=sanitized)", 427), ("mbpp", 500)]


@pytest.mark.parametrize("step", [25, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("spec", "count"), CANONICAL)
def test_canonical_programs_pass(data: Path, sandbox: str, spec: str, count: int, step: int):
    problems = list(task.make(spec).problems())
    assert len(problems) == count
    assert wrong(spec, [(problem, problem.gold) for problem in problems[::step]]) == []


def test_programs_run_only_if_that_is_allowed():
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


def test_programs_are_found_in_outputs(sandbox: str):
    assert wrong("humaneval", [(ADD, text) for text in RIGHT]) == []
    assert len(wrong("humaneval", [(ADD, text) for text in WRONG])) == len(WRONG)


def test_a_weaker_sandbox_is_noted_in_the_grade():
    benchmark = task.make("humaneval", allow_code=True, sandbox="rlimits")
    grade = benchmark.grade(ADD, RIGHT[0])
    assert grade.right
    assert grade.note == "ran under rlimits only"


def test_mbpp_marks_are_read():
    assert read("[BEGIN]\ndef f(x):\n    return x\n[DONE]") == "def f(x):\n    return x"


def test_programs_that_differ_in_layout_vote_together():
    benchmark = task.make("mbpp")
    first, other = "```python\ndef f( x ):\n    # a thought\n    return x\n```", "```\ndef f(x): return x\n```"
    assert benchmark.key(first) == benchmark.key(other)
    assert benchmark.key("nothing") == "nothing"


WORDS = ["def f(x):", "\n", "    ", "return x", "```", "```python\n", "[BEGIN]", "[DONE]", "(", "import os", "class A:"]
WORDS += ['"""', "\0", "\\d", "@", "x = ", "-" * 50]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=4)).map("".join))
def test_reading_never_raises(text: str):
    program = read(text, "f")
    assert program is None or isinstance(program, str)
    tidy(text)
    for name in ("humaneval", "mbpp"):
        task.make(name).key(text)
    task.make("humaneval").program_test(ADD, text)  # type: ignore[attr-defined]


def fenced(code: str) -> str:
    return f"Here it is:\n```python\n{code}\n```\nThat is all."


def needing(before: str, check: str) -> Callable[[str, str], str]:
    """Return a layout in which the function works only if the statements before it have run."""

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


def test_a_program_is_right_in_every_layout(sandbox: str):
    assert wrong("humaneval", [(ADD, text) for text in outputs(ADD, "    return sum(x)\n").values()]) == []


@pytest.mark.slow
def test_twenty_canonical_programs_are_right_in_every_layout(data: Path, sandbox: str):
    trials = []
    for problem in list(task.make("humaneval").problems())[4::8]:
        prompt = problem.data["prompt"]
        code = problem.gold[problem.gold.index(prompt) + len(prompt) : problem.gold.rindex("```")]
        trials += [(problem, text) for text in outputs(problem, code).values()]
    assert len(trials) == 20 * len(LAYOUTS)
    assert wrong("humaneval", trials) == []


FORGED = {
    "HumanEval/32": "def poly(xs, x):\n    return 0\ndef find_zero(xs):\n    return 0\n",
    "HumanEval/38": "def encode_cyclic(s):\n    return s\ndef decode_cyclic(s):\n    return s\n",
    "HumanEval/50": "def encode_shift(s):\n    return s\ndef decode_shift(s):\n    return s\n",
}


def test_a_program_does_not_replace_the_helpers_of_the_tests(data: Path, sandbox: str):
    problems = {problem.id: problem for problem in task.make("humaneval").problems()}
    trials = [(problems[name], fenced(program)) for name, program in FORGED.items()]
    assert len(wrong("humaneval", trials)) == len(FORGED)


@pytest.mark.parametrize("value", ["Fraction(3, 2)", "Decimal('1.5')"])
def test_exact_numbers_equal_other_numbers_of_the_same_value(sandbox: str, value: str):
    program = f"from fractions import Fraction\nfrom decimal import Decimal\ndef f(): return {value}"
    assert run(ProgramTest(program, ("assert f() == 1.5",), ("f",))).right
    assert not run(ProgramTest(program, ("assert f() == 2",), ("f",))).right


def test_an_unfenced_function_is_found_after_thousands_of_lines():
    text = "from here on it is simple\n" * 600 + "def f(x):\n    return x\n"
    assert read(text, "f") == "def f(x):\n    return x\n"


LINES = ("def f(\n", "x = (\n", "import os)\n", "class A:\n", "@f\n", "def f(x): return x +\n", "```\n")
ENDLESS = ("(" * 100_000, "-" * 20_000 + "1", "x" + ".a" * 9000)


@pytest.mark.parametrize("text", [*(line * 5000 for line in LINES), *ENDLESS])
def test_the_number_of_characters_parsed_is_bounded(text: str, monkeypatch: pytest.MonkeyPatch):
    parsed: list[int] = []
    parse = programs.ast.parse
    monkeypatch.setattr(programs.ast, "parse", lambda text, *more: (parsed.append(len(text)), parse(text, *more))[1])
    for find in (longest_span, longest_beginning, read, task.make("mbpp").key):
        parsed.clear()
        find(text)
        assert sum(parsed) <= 2 * (PARSED + LONGEST)
