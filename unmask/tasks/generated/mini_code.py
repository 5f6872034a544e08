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

Half of the functions are described (`programs.py`), half are given by examples (`unknowns.py`). Answers run in a
small interpreter (`interpreter.py`), never in Python itself. The level is how many pieces a function is made of.
'''

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, ClassVar

from unmask.tasks.generated import interpreter
from unmask.tasks.generated.generated import Generated, Sketch, between, choose
from unmask.tasks.generated.inferred_programs import FINDS
from unmask.tasks.generated.programs import KINDS, LETTERS
from unmask.tasks.task import Problem, task

_FENCED = re.compile(r"```(?:python)?[ \t]*\n(.*?)```", re.DOTALL)
_NAME = "f"


def _calls() -> dict[str, list[tuple[Any, ...]]]:
    """Hidden calls by signature: whole ranges of numbers, so that a constant off by one is noticed."""
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
    version: ClassVar[int] = 3
    levels: ClassVar[range] = range(1, 5)
    missing: ClassVar[str] = "no function"

    level: int = 2  # how many pieces a function is made of

    def sketch(self, rng: Random) -> Sketch:
        takes, text, body, solve, shown = choose(rng, choose(rng, (KINDS, FINDS)))(rng, self.level)
        examples = [(arguments, solve(*arguments)) for arguments in shown or (_example(rng, takes),)]
        question = ask(takes, text, examples)
        gold = "\n    ".join([f"def {_NAME}({takes}):", *body])
        return Sketch(question if shown else f"{takes}: {text}", question, gold, {"takes": takes})

    def read(self, text: str) -> str | None:
        """The program: the last fenced block, else everything from the first `def`."""
        fenced = _FENCED.findall(text[: 4 * interpreter.LONGEST])
        text = fenced[-1] if fenced else text
        start = text.find("def ")
        return text[start:].rstrip() if start >= 0 else None

    def key(self, text: str) -> str:
        """Programs that differ only in layout and comments vote together."""
        answer = self.read(text)
        if answer is None:
            return text
        try:
            return ast.unparse(interpreter.parse(answer))
        except (interpreter.ProgramError, RecursionError):
            return answer

    def fault(self, problem: Problem, answer: str) -> str:
        """Every hidden call must return what the gold program returns."""
        takes = problem.data["takes"]
        try:
            program = interpreter.load(answer)
            for arguments, wanted in zip(CALLS[takes], _results(problem.gold, takes), strict=True):
                if not program.gives(_NAME, arguments, wanted):
                    return "a hidden call gives another value"
        except interpreter.ProgramError as error:
            return str(error)
        return ""


def ask(takes: str, text: str, examples: Sequence[tuple[Sequence[Any], Any]]) -> str:
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


@lru_cache(maxsize=4096)
def _results(gold: str, takes: str) -> tuple[Any, ...]:
    program = interpreter.load(gold)
    return tuple(program.call(_NAME, arguments) for arguments in CALLS[takes])
