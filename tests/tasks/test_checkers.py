"""Checkers: odd texts first, then what passes and what fails; no verdict depends on a gold answer."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from unmask.child_process import ChildError, ChildProcess
from unmask.errors import UnmaskError
from unmask.registry import Registry
from unmask.tasks import checker_child, task
from unmask.tasks.checkers import Checker, Length, Verdict, check_all, checker
from unmask.tasks.task import Problem
from unmask.tasks.worked import statements

FAMILIES = ("countdown", "mini-code", "mini-gsm", "mini-math", "sudoku")
HOSTILE = [
    *(
        "",
        " ",
        "\x00",
        "\ud800",
        "=",
        "<answer></answer>",
        "\\boxed{}",
        "<answer>1/0</answer>",
        "def f(",
        "```python\n",
    ),
    *("\\boxed{" * 5000, "<answer>" * 5000, "(" * 50_000 + "=1", "1=" * 50_000, "1+1=" * 30_000, "1," * 50_000 + "="),
    *(
        "9" * 100_000 + "*9=1",
        "2^" * 500 + "9=1",
        "\\boxed{9^9^9^9}",
        f"<answer>{'9' * 5000}</answer>",
        "1*1=1 " * 9999,
    ),
    *("<answer>" + "(" * 9000 + "</answer>", "<answer>٣٣٣</answer>", "\\boxed{x^99999}", "\\boxed{" + "+x" * 40 + "}"),
    *("def f(xs):\n    return 9**9**9**9", "def f(xs):\n    while True:\n        pass", "1/0=0\n\\boxed{3}"),
]


def inside(verdict: Verdict, text: str) -> bool:
    return verdict.span is None or 0 <= verdict.span[0] < verdict.span[1] <= len(text)


def problems(family: str, count: int, split: str = "validation") -> list[tuple[Any, Problem]]:
    """Return problems of every level of a generated family."""
    levels = type(task.make(family)).levels  # type: ignore[attr-defined]
    made = [task.make(f"{family}(split={split}, level={level})") for level in levels]
    return [(each, problem) for each in made for problem in islice(each.problems(), count // len(made))]


def verdict(each: Any, problem: Problem, text: str) -> Verdict:
    check = each.visible(each.messages(problem))
    assert check is not None
    return check(text)


@pytest.mark.parametrize("value", [float("nan"), -0.1, 1.1, 2, None, "yes", (), (1,), (1, 2, 3), [], {"score": 1}])
def test_nonsense_is_refused_as_a_verdict(value: Any):
    with pytest.raises(UnmaskError, match="got"):
        Verdict.of(value, "text")


@pytest.mark.parametrize("span", [(0, 0), (3, 1), (-1, 2), (0, 5), (0.0, 1.0), "ab", 3, (1, 2, 3), (True, 2)])
def test_a_span_outside_the_text_is_refused(span: Any):
    with pytest.raises(UnmaskError, match="span"):
        Verdict.of((0, span), "text")
    with pytest.raises(UnmaskError, match="span"):
        Verdict.of(Verdict(0, span), "text")


def test_a_function_may_return_a_bool_a_number_a_pair_or_a_verdict():
    assert Verdict.of(True, "") == Verdict(1.0)
    assert Verdict.of(0.25, "") == Verdict(0.25)
    assert Verdict.of((0, [1, 3]), "text") == Verdict(0.0, (1, 3))
    assert Verdict.of((0.5, None), "text") == Verdict(0.5)
    assert Verdict.of(Verdict(0.0, (0, 4), "no"), "text") == Verdict(0.0, (0, 4), "no")
    assert Verdict.of(1, "").passed
    assert not Verdict.of(0.999, "").passed


@pytest.mark.parametrize(
    "spec",
    [
        *("json(schema=missing.json)", "python(tests=missing.py)", "command(program=missing)", "regex(pattern='(')"),
        *("regex", "contains(text='')", "length", "length(least=3, most=2)", "length(least=-1)", "length(most=-1)"),
        *("length(most=2, unit=pages)", "command(program=/etc, seconds=1)", "jsn"),
    ],
)
def test_bad_settings_are_refused_when_a_checker_is_made(spec: str):
    with pytest.raises(UnmaskError):
        checker.make(spec)


def test_a_checker_is_made_from_the_text_form_that_it_has():
    for spec in (
        "length(least=none, most=3, unit=words)",
        "regex(pattern='a(b)=, c', full=false)",
        "json(schema=none)",
    ):
        assert checker.spec(checker.make(spec)) == spec


def test_every_registered_checker_is_a_checker():
    assert isinstance(checker, Registry)
    assert all(issubclass(checker.find(name), Checker) for name in checker)


def test_regex_matches_the_whole_text_unless_told_otherwise():
    assert not checker.make("regex(pattern='[a-c]+')")("abcd").passed
    assert checker.make("regex(pattern='[a-c]+')")("abc").passed
    assert checker.make("regex(pattern='[a-c]+', full=false)")("abcd").passed


def test_contains_is_literal():
    assert checker.make("contains(text='a.c')")("xa.cx").passed
    assert not checker.make("contains(text='a.c')")("abc").passed


@pytest.mark.parametrize(
    ("unit", "text", "count"),
    [
        *(("characters", "", 0), ("characters", "a\nb", 3), ("words", " a  b\nc ", 3), ("words", " ", 0)),
        *(("lines", "", 0), ("lines", "a\n", 1), ("lines", "a\n\nb", 3), ("lines", "\n", 1)),
    ],
)
def test_length_counts(unit: Any, text: str, count: int):
    assert Length(count, count, unit)(text).passed
    assert not Length(least=count + 1, unit=unit)(text).passed
    if count:
        assert not Length(most=count - 1, unit=unit)(text).passed


def test_what_is_too_long_is_the_span():
    text = "one two three four"
    found = Length(most=2, unit="words")(text)
    assert found.span is not None
    assert text[slice(*found.span)] == "three four"
    assert found.score == 0.5


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, '{"a": NaN}', "9" * 9999, "{'a': 1}", '{"a": 1} x', "```\n{\n```"]
)
def test_what_is_not_json_fails(text: str):
    found = checker.make("json")(text)
    assert found.score == 0
    assert inside(found, text)


@pytest.mark.parametrize("text", ["1", ' {"a": [1e9, "\\u00e9"]}\n', "```json\n[1]\n```", "null"])
def test_json_passes_alone_or_in_a_fence(text: str):
    assert checker.make("json")(text).passed


def schema(folder: Path, value: Any) -> Checker:
    path = folder / "schema.json"
    path.write_text(json.dumps(value))
    return checker.make(f"json(schema='{path}')")


def test_the_span_is_the_first_wrong_value(tmp_path: Path):
    check = schema(tmp_path, {"properties": {"n": {"items": {"type": "string"}}, "age": {"minimum": 0}}})
    text = '```json\n{"x": {"age": [1, {}]}, "n" : ["a,:", 2 , 3], "age": -1}\n```'
    found = check(text)
    assert found.span is not None
    assert text[slice(*found.span)] == "2"
    assert 0 < found.score < check('{"age": -1}').score < 1
    assert check('{"age": 1, "n": []}').passed


def test_references_are_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("urllib.request.urlopen", lambda *_: pytest.fail("it was fetched"))
    other = tmp_path / "other.json"
    other.write_text("true")
    for address in ("https://example.com/a.json", other.as_uri(), "other.json"):
        with pytest.raises(UnmaskError, match="refers to"):
            schema(tmp_path, {"$ref": address})("1")
    assert schema(tmp_path, {"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}})("1").passed


@pytest.mark.parametrize("content", ["{", '{"type": "nothing"}', "[]", '"text"'])
def test_a_bad_schema_is_refused(tmp_path: Path, content: str):
    path = tmp_path / "schema.json"
    path.write_text(content)
    with pytest.raises(UnmaskError, match="schema"):
        checker.make(f"json(schema='{path}')")


TESTS = """
import math
def near(a, b): return math.isclose(a, b)
assert near(f(2), 4)
assert f(3) == 9, "three"
def test_zero():
    assert f(0) == 0
assert g() == "g"
"""


@pytest.mark.parametrize(
    ("text", "score"),
    [
        *(("", 0), ("no program", 0), ("def f(x): return", 0), ("import os\nos._exit(0)", 0)),
        ("class Same:\n    def __eq__(self, other): return True\ndef f(x): return Same()\ng = Same", 0),
        ("def near(a, b): return True\ndef f(x): return 1", 0),
        ("def f(x):\n    raise AssertionError('x 0 y')\ndef g(): return 'g'", 0),
        ("Here:\n```python\ndef f(x):\n    return 2 * x\n```", 0),
        ("def f(x): return x * x\ndef g(): return 'h'", 0),
        ("def f(x): return x and x * x if x else 1\ndef g(): return 'g'", 0),
        ("def f(x): return x * x\ndef g(): return 'g'", 1),
    ],
)
def test_programs_pass_if_all_tests_do(sandbox: str, tmp_path: Path, text: str, score: float):
    path = tmp_path / "tests.py"
    path.write_text(TESTS)
    assert checker.make(f"python(tests='{path}')")(text).score == score


@pytest.mark.parametrize("content", ["assert (", "x = 1", "def test_a(b): pass"])
def test_a_file_without_tests_is_refused(tmp_path: Path, content: str):
    path = tmp_path / "tests.py"
    path.write_text(content)
    with pytest.raises(UnmaskError, match=r"tests\.py"):
        checker.make(f"python(tests='{path}')")


def command(folder: Path, body: str, seconds: float = 20) -> Checker:
    path = folder / "check"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return checker.make(f"command(program='{path}', seconds={seconds})")


@pytest.mark.parametrize(
    "body",
    [
        *("exit 2", "kill -9 $$", "echo '{bad'", "echo '{\"score\": 2}'", "echo '{\"score\": null}'"),
        *("echo '{\"span\": [2, 99]}'", "echo '{\"score\": 1}'; exit 1"),
    ],
)
def test_a_program_that_misbehaves_is_an_error(tmp_path: Path, body: str):
    with pytest.raises(UnmaskError):
        command(tmp_path, body)("hello")


def test_a_program_that_takes_too_long_is_an_error(tmp_path: Path):
    with pytest.raises(UnmaskError, match="seconds"):
        command(tmp_path, "sleep 600 & sleep 600", 0.2)("hello")
    with pytest.raises(UnmaskError, match="seconds"):
        command(tmp_path, "exec >&- 2>&-; sleep 600", 0.2)("hello")


def test_a_program_reads_the_text_and_states_a_verdict(tmp_path: Path):
    assert command(tmp_path, "grep -q '^$(exit) `x` ü$'")("$(exit) `x` ü").passed
    assert command(tmp_path, "exit 1")("x" * 10**6) == Verdict(0.0)
    stated = 'echo working; echo \'{"score": 0.5, "span": [0, 2], "note": "hm"}\'; exit 1'
    assert command(tmp_path, stated)("hello") == Verdict(0.5, (0, 2), "hm")


def test_a_program_that_is_not_executable_is_refused(tmp_path: Path):
    path = tmp_path / "check"
    path.write_text("#!/bin/sh\n")
    with pytest.raises(UnmaskError, match="chmod"):
        checker.make(f"command(program='{path}')")


def test_several_checks_have_the_lowest_score_and_the_first_span():
    checks = (Length(least=1), Length(most=4), Length(most=2))
    found = check_all(checks, "abcdefgh")
    assert (found.score, found.span) == (0.25, (4, 8))
    assert check_all(checks, "ab").passed
    assert check_all((), "").passed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("", []), ("x+2=5", []), ("7x-12*2=84", []), ("x - 12*2 = 60", []), ("2*3=6x", []), ("(x+3)*2=10", [])),
        *(("f(2)+3=10", []), ("a = 5", []), ("√(144) = 12", []), ("2*3 = 6\\sqrt{2}", []), ("1 and 1/4 = 5", [])),
        *(("First 3 + 4 = 7, then 7*2 = 15.", [True, False]), ("412=51*8+4", [True]), ("3*-4=-12", [True])),
        *(("5+3=8+2=10", [False]), ("10/3 = 3.33", [True]), ("10/3 = 3.34", [False]), ("10/3=3", [False])),
        *(("2/2=<<2/2=1>>1", [True]), ("$5 x 3 = $15", [True]), ("1,200*2=2,400", [True]), ("12,00*2=24", [])),
        *(("\\(5 \\times 3 = 16\\)", [False]), ("**5+3=8**", [True]), ("2**3=8", [True]), ("-2^2=-4", [True])),
        *(("20%*50=10", [True]), ("1/4 = 25%", [True]), ("100/4 = 25%", [True]), ("100/4 = 26%", [False])),
        *(("1/0=0", [False]), ("9^9^9^9=1", [False]), ("2^(1/2)=1", [False]), ("y = 2*3 = 6", [True])),
    ],
)
def test_statements_are_found_and_computed(text: str, expected: list[bool]):
    assert [statement.holds for statement in statements(text)] == expected


def test_a_percent_sign_can_be_the_remainder():
    assert [line.holds for line in statements("81*7%13=8\n81*7%13=9", modulo=True)] == [True, False]


@pytest.mark.parametrize("family", FAMILIES)
def test_worked_solutions_pass(family: str):
    for each, problem in problems(family, 200, "train"):
        assert verdict(each, problem, problem.gold).passed, problem


@pytest.mark.parametrize("family", FAMILIES)
def test_no_verdict_depends_on_the_gold(family: str):
    for each, problem in problems(family, 20):
        poisoned = replace(problem, id="?", gold="?", data=dict.fromkeys(problem.data, "?"))
        changed = _changed(problem.gold)
        for text in (problem.gold, changed, "\\boxed{?}", "<answer>?</answer>", "?"):
            assert verdict(each, problem, text) == verdict(each, poisoned, text)


def _changed(text: str) -> str:
    """Change the last digit of a text."""
    place = max(match.start() for match in re.finditer("[0-9]", text))
    return text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :]


@pytest.mark.parametrize("family", ["countdown", "mini-gsm", "sudoku"])
def test_a_changed_answer_fails_with_a_span(family: str):
    for each, problem in problems(family, 100):
        text = _changed(problem.gold)
        if each.grade(problem, text).right:  # an exponent of 0, or a second solution
            continue
        found = verdict(each, problem, text)
        assert not found.passed, (problem, text)
        assert found.span is not None
        assert inside(found, text)


@pytest.mark.parametrize("family", ["mini-gsm", "mini-math", "countdown"])
def test_a_changed_statement_is_the_span(family: str):
    for each, problem in problems(family, 50):
        lines = problem.gold.split("\n")
        if "=" not in lines[0]:
            continue
        lines[0] = _changed(lines[0])
        text = "\n".join(lines)
        found = verdict(each, problem, _changed(text))  # the answer is wrong as well
        assert found.span == (0, len(lines[0])), (problem, text)


def test_a_story_must_use_its_numbers():
    story = "Ada has 6 toys. Ada buys 3 packs of 4 more. How many toys does Ada have?"
    check = task.make("mini-gsm").visible([{"role": "user", "content": story}])
    assert check is not None
    assert check("3*4=12\n6+12=18\n<answer>18</answer>").passed
    for wrong in ("6+3=9", "3*4=12\n6+12=18\n18+1=19", "6+4=10\n10+5=15"):
        assert not check(f"{wrong}\n<answer>{wrong.rpartition('=')[2]}</answer>").passed
    assert not check("<answer>18</answer>").passed
    assert not check("3*4=12\n6+12=18\n<answer>19</answer>").passed


def test_an_exercise_is_checked_by_its_lines():
    check = task.make("mini-math").visible([{"role": "user", "content": "What is the meaning of 42?"}])
    assert check is not None
    assert check("6*7=42\n\\boxed{42}").passed
    assert not check("6*7=43\n\\boxed{43}").passed
    assert not check("6*7=42").passed


@pytest.mark.parametrize("name", ["gsm8k", "math500"])
def test_worked_lines_of_published_problems_are_checked(name: str):
    check = task.make(name).visible([{"role": "user", "content": "How many?"}])
    assert check is not None
    assert check("<reasoning>5 * 3 = $15, so</reasoning><answer>\\boxed{15}</answer>").passed
    text = "<reasoning>5 * 3 = 16 apples</reasoning><answer>\\boxed{16}</answer>"
    found = check(text)
    assert found.span is not None
    assert text[slice(*found.span)] == "5 * 3 = 16"
    assert not check("<reasoning>5 * 3 = 15</reasoning>").passed
    assert check("<answer>\\boxed{x+1}</answer>").passed == (name == "math500")


def test_published_puzzles_are_checked_by_their_question():
    made = task.make("countdown-d1")
    check = made.visible(made.messages(Problem("", "Numbers: [30, 100, 93]\nTarget: 23", "", {})))
    assert check is not None
    assert check("<answer>\\boxed{30+93-100}</answer>").passed
    assert not check("<answer>\\boxed{23}</answer>").passed
    made = task.make("sudoku-d1")
    check = made.visible(made.messages(Problem("", "Solve the following Sudoku puzzle: 3102200002100320", "", {})))
    assert check is not None
    assert check("<answer>3142243142131324</answer>").passed
    found = check("<answer>3142243142131323</answer>")
    assert found.span == (19, 20)  # the first of two equal digits in a column
    assert 0 < found.score < 1


def test_a_question_that_shows_nothing_has_no_check():
    nothing = [{"role": "user", "content": "hello"}]
    for name in ("countdown", "countdown-d1", "sudoku", "sudoku-d1", "mini-code"):
        assert task.make(name).visible(nothing) is None
        assert task.make(name).visible([]) is None


def test_programs_are_not_run_unless_allowed():
    for name in ("mbpp", "humaneval"):
        with pytest.raises(UnmaskError, match="allow"):
            task.make(name).visible([{"role": "user", "content": "assert f(1) == 2"}])


def test_the_asserts_of_a_question_are_run(sandbox: str):
    question = "Write f.\n\n```python\nassert f(2) == 4\nassert math.isclose(f(3), 9)\n```"
    check = task.make("mbpp(allow-code=true)").visible([{"role": "user", "content": question}])
    assert check is not None
    assert check("```python\ndef f(x):\n    return x * x\n```").passed
    assert check("```python\ndef f(x):\n    return 2 * x\n```").score == 0
    assert check("").score == 0


def test_the_examples_of_a_docstring_are_run(sandbox: str):
    prompt = (
        'import os\n\ndef helper(x): return x\n\ndef f(x):\n    """Square.\n    >>> f(2)\n    4\n    >>> f(0.5)\n'
        '    0.25\n    >>> f(3)\n    os.getpid()\n    >>> f(\'a\')\n    Traceback\n    """\n'
    )
    made = task.make("humaneval(allow-code=true)")
    check = made.visible(made.messages(Problem("", prompt, "", {})))
    assert check is not None
    assert check("```python\ndef f(x):\n    return x * x\n```").passed
    assert check("    return x * x").passed
    assert check("    return 2 * x").score == 0


@pytest.mark.parametrize("family", [*FAMILIES, "gsm8k", "math500", "countdown-d1", "sudoku-d1"])
def test_hostile_texts_get_a_verdict(family: str):
    source = {"countdown-d1": "countdown", "sudoku-d1": "sudoku"}.get(family, family)
    if source in FAMILIES:
        messages = task.make(source).messages(next(iter(task.make(f"{source}(split=train)").problems())))
    else:
        messages = [{"role": "user", "content": "How many?"}]
    check = task.make(family).visible(messages)
    assert check is not None
    for text in HOSTILE:
        found = check(text)
        assert 0 <= found.score <= 1
        assert inside(found, text)


def test_hostile_questions_raise_nothing():
    for name in (*FAMILIES, "gsm8k", "math500", "countdown-d1", "sudoku-d1"):
        for text in (
            *HOSTILE,
            "Numbers: [" + "1, " * 9999 + "1]\nTarget: 3",
            ">>> f(" * 999 + "\n1",
            ">>> f(9**9**9)\n1",
        ):
            check = task.make(name).visible([{"role": "user", "content": text}])
            assert check is None or inside(check("1+1=2"), "1+1=2")


def test_the_child_process_answers_as_the_checkers_do():
    child = ChildProcess(Path(checker_child.__file__), memory=2 << 30, seconds=20)
    messages = [{"role": "user", "content": "Numbers: [87, 28, 35]\nTarget: 94"}]
    request = {"checks": ["length(most=60)"], "task": "countdown", "messages": messages}
    try:
        good, bad = (f"{lines}<answer>87-28+{n}</answer>" for lines, n in (("", 35), ("87-28=58\n", 36)))
        assert child.ask(request | {"text": good}) == {"score": 1.0, "span": None, "note": ""}
        assert child.ask(request | {"text": bad})["span"] == [0, 8]
        assert child.ask(request | {"text": good + " " * 60})["span"] == [60, len(good) + 60]
        with pytest.raises(ChildError, match="nothing to check"):
            child.ask({"checks": [], "task": "countdown", "messages": [], "text": ""})
        with pytest.raises(ChildError, match="did you mean"):
            child.ask({"checks": ["lenght"], "task": None, "messages": [], "text": ""})
    finally:
        child.stop()


@pytest.mark.parametrize("body", ["yes", "yes >&2"])
def test_a_program_that_writes_without_end_is_stopped(tmp_path: Path, body: str):
    child = ChildProcess(Path(checker_child.__file__), memory=1 << 29, seconds=20)
    spec = checker.spec(command(tmp_path, body, seconds=100))
    try:
        with pytest.raises(ChildError):
            child.ask({"checks": [spec], "task": None, "messages": [], "text": ""})
    finally:
        child.stop()
