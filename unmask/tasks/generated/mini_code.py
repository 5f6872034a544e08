'''Small Python functions from a signature, a description and examples, checked by hidden calls.

    def f(xs):
        """Start with 4 and add x plus 12 for each x in xs that is above 7.
        >>> f([9, 2, 8])
        45
        """

    def f(xs):
        t = 4
        for x in xs:
            if x > 7:
                t += x + 12
        return t

Half of the functions are described, half are given by examples (`programs.py`). Answers are written in a small subset
of Python and run in a child process (`restricted_python.py`). The level is the number of pieces of a function.
'''

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from unmask.child_process import ChildError, ChildNotStartedError, ChildProcess, ChildStoppedError
from unmask.tasks.checkers import Check, Verdict, examples
from unmask.tasks.generated import restricted_python
from unmask.tasks.generated.base import Generated, Sketch, between, choose
from unmask.tasks.generated.programs import FINDS, KINDS, LETTERS
from unmask.tasks.generated.restricted_python import LONGEST, ProgramError, parse
from unmask.tasks.task import Problem, question_in, task

_FENCED = re.compile(r"```(?:python)?[ \t]*\n(.*?)```", re.DOTALL)
_NAME = "f"


def _calls() -> dict[str, list[tuple[Any, ...]]]:
    """Return the hidden calls by signature: whole ranges of numbers, so that a constant off by one is noticed."""
    rng = Random(20)
    span, wide = list(range(-15, 36)), list(range(-50, 90))
    lists = [[rng.randint(-20, 40) for _ in range(rng.randint(5, 10))] for _ in range(8)]
    words = ["".join(rng.choices(LETTERS, k=rng.randint(5, 14))) for _ in range(16)]
    pairs = [(5 + gap, 5) for gap in range(36)] + [(0, b) for b in range(26)] + [(1, 1), (-3, 1), (-7, -2)]
    alone = [[number] for number in range(-11, 28)]
    return {
        "xs": [(xs,) for xs in ([], *lists, *alone, span, span[::-1], rng.sample(wide, len(wide)))],
        "s": [(s,) for s in ("", *words)],
        "n": [(n,) for n in (*range(13), 30, 60)],
        "a, b": [*pairs, *((rng.randint(-20, 60), rng.randint(-20, 60)) for _ in range(12))],
    }


CALLS = _calls()


@task("mini-code")
@dataclass(frozen=True)
class MiniCode(Generated):
    version: ClassVar[int] = 4
    levels: ClassVar[range] = range(1, 5)
    missing: ClassVar[str] = "no function"

    level: int = 2  # pieces of a function

    def sketch(self, rng: Random) -> Sketch:
        takes, text, body, solve, shown = choose(rng, choose(rng, (KINDS, FINDS)))(rng, self.level)
        examples = [(arguments, solve(*arguments)) for arguments in shown or (_example(rng, takes),)]
        question = ask(takes, text, examples)
        gold = "\n    ".join([f"def {_NAME}({takes}):", *body])
        return Sketch(question if shown else f"{takes}: {text}", question, gold, {"takes": takes})

    def read(self, text: str) -> str | None:
        """Return the program: the last fenced block, else everything from the first `def`."""
        fenced = _FENCED.findall(text[: 4 * LONGEST])
        text = fenced[-1] if fenced else text
        start = text.find("def ")
        return text[start:].rstrip() if start >= 0 else None

    def key(self, text: str) -> str:
        """Return the same key for programs that differ only in layout and comments."""
        answer = self.read(text)
        if answer is None:
            return text
        try:
            return ast.unparse(parse(answer))
        except (ProgramError, RecursionError):
            return answer

    def fault(self, problem: Problem, answer: str) -> str:
        """Return why a hidden call does not return what the gold program returns."""
        takes = problem.data["takes"]
        try:
            same = results(answer, CALLS[takes]) == _gold_results(problem.gold, takes)
        except ProgramError as error:
            return str(error)
        return "" if same else "a hidden call returns a different value"

    def visible(self, messages: Sequence[Mapping[str, str]]) -> Check | None:
        """Return the check that the program returns what the examples of the question show."""
        shown: list[tuple[str, str]] = []  # arguments as a list in JSON, and the `repr` of the result
        for call, result in examples(question_in(messages)):
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                if isinstance(call.func, ast.Name) and call.func.id == _NAME and not call.keywords:
                    shown.append((json.dumps([ast.literal_eval(each) for each in call.args]), repr(result)))

        def check(text: str) -> Verdict:
            try:
                returned = results(self.read(text) or "", [json.loads(arguments) for arguments, _ in shown])
            except ProgramError as error:
                return Verdict(0.0, note=str(error))
            wrong = [arguments for result, (arguments, right) in zip(returned, shown, strict=True) if result != right]
            note = f"{_NAME} returns a different value for {wrong[0]}" if wrong else ""
            return Verdict(1 - len(wrong) / len(shown), note=note)

        return check if shown else None


def ask(takes: str, text: str, examples: Sequence[tuple[Sequence[Any], Any]]) -> str:
    """Return the question: a signature and a docstring with examples."""
    lines = [f"def {_NAME}({takes}):", f'"""{text}']
    for arguments, result in examples:
        lines += [f">>> {_NAME}({', '.join(map(_literal, arguments))})", _literal(result)]
    return "\n    ".join([*lines, '"""'])


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _example(rng: Random, takes: str) -> tuple[Any, ...]:
    if takes == "xs":
        return ([between(rng, -20, 39) for _ in range(4)],)
    if takes == "s":
        return ("".join(choose(rng, LETTERS) for _ in range(6)),)
    if takes == "n":
        return (between(rng, 2, 10),)
    return between(rng, -5, 34), between(rng, -5, 34)


def results(program: str, calls: Sequence[Sequence[Any]]) -> list[str]:
    """Return the `repr` of the result of each call, or raise a `ProgramError`."""
    try:
        return _child().ask([program, _NAME, calls])
    except ChildNotStartedError:
        raise
    except ChildStoppedError:
        raise ProgramError("the time or memory limit was exceeded") from None
    except ChildError as error:
        raise ProgramError(str(error).removeprefix("ProgramError: ")) from None


@cache
def _child() -> ChildProcess:
    return ChildProcess(Path(restricted_python.__file__), memory=256 << 20, seconds=1)


@lru_cache(maxsize=4096)
def _gold_results(gold: str, takes: str) -> list[str]:
    return results(gold, CALLS[takes])
