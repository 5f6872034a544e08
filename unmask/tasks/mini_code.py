'''Small Python functions from a signature, a description and an example, checked by hidden calls.

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

Answers are walked by our own interpreter (`interpreter.py`), never executed. The level is how much is put
together.
'''

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from unmask.tasks import interpreter
from unmask.tasks.generated import Generated, Sketch
from unmask.tasks.programs import KINDS, LETTERS
from unmask.tasks.task import Grade, Metric, Problem, task

CASES = 6  # hidden calls a problem
_FENCED = re.compile(r"```(?:python)?[ \t]*\n(.*?)```", re.DOTALL)
_NAME = "f"


def _inputs() -> dict[str, list[tuple[Any, ...]]]:
    """Arguments by what a function takes, the same in every process; `… short` ones are for examples."""
    rng = Random(20)
    numbers = [[rng.randint(-20, 40) for _ in range(rng.randint(5, 10))] for _ in range(500)]
    words = ["".join(rng.choices(LETTERS, k=rng.randint(5, 14))) for _ in range(500)]
    pairs = [(rng.randint(-20, 60), rng.randint(-20, 60)) for _ in range(500)]
    counts = [rng.randint(0, 30) for _ in range(500)]
    return {
        "xs": [(xs,) for xs in numbers],
        "s": [(s,) for s in words],
        "a, b": list(pairs),
        "n": [(n,) for n in counts],
        "xs short": [(xs[:4],) for xs in numbers],
        "s short": [(s[:6],) for s in words],
        "a, b short": list(pairs),
        "n short": [(n % 10,) for n in counts],
    }


INPUTS = _inputs()


@task("mini-code")
@dataclass(frozen=True)
class MiniCode(Generated):
    family: ClassVar[str] = "mini-code"
    levels: ClassVar[range] = range(1, 5)

    level: int = 2

    def sketch(self, rng: Random) -> Sketch:
        takes, says, body, means = KINDS[int(rng.random() * len(KINDS))](rng, self.level)
        at = int(rng.random() * (500 - CASES))
        cases = [(arguments, means(*arguments)) for arguments in INPUTS[takes][at : at + CASES]]
        example = INPUTS[f"{takes} short"][at]
        question = ask(takes, says, example, means(*example))
        gold = "\n    ".join([f"def {_NAME}({takes}):", *body])
        return Sketch(f"{takes}: {says}", question, gold, {"cases": cases})

    def answer(self, text: str, metric: Metric = "ours") -> str | None:
        """The program: what the last fence holds, else everything from the first `def`."""
        del metric
        fenced = _FENCED.findall(text[: 4 * interpreter.LONGEST])
        text = fenced[-1] if fenced else text
        start = text.find("def ")
        return text[start:].rstrip() if start >= 0 else None

    def key(self, text: str) -> str:
        """Programs that differ in blanks and comments only vote together."""
        answer = self.answer(text)
        if answer is None:
            return text
        try:
            return ast.unparse(interpreter.parse(answer))
        except (interpreter.ProgramError, RecursionError):
            return answer

    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade:
        answer = self.answer(text, metric)
        note = "no function" if answer is None else fault(answer, problem.data["cases"])
        return Grade(not note, float(not note), answer, note)


def ask(takes: str, says: str, example: Sequence[Any], result: Any) -> str:
    shown = ", ".join(map(_literal, example))
    call = f">>> {_NAME}({shown})\n    {_literal(result)}"
    return f'def {_NAME}({takes}):\n    """{says}\n    {call}\n    """'


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def fault(source: str, cases: Sequence[tuple[Sequence[Any], Any]]) -> str:
    """Why a program is wrong; nothing where every call gives what it should."""
    try:
        program = interpreter.load(source)
        for arguments, wanted in cases:
            if not program.gives(_NAME, arguments, wanted):
                return "a hidden call gives another value"
    except interpreter.ProgramError as error:
        return str(error)
    return ""
