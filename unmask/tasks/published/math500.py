"""MATH500 (arXiv 2305.20050): 500 competition problems whose answers are LaTeX.

    {"problem": "If $f(x) = \\\\frac{3x-2}{x-2}$, what is the value of $f(-2) +f(-1)+f(0)$? Express your answer as …",
     "solution": "… $=\\\\boxed{\\\\frac{14}{3}}$", "answer": "\\\\frac{14}{3}",
     "subject": "Algebra", "level": 3, "unique_id": "test/algebra/2584.json"}

`d1` compares normalised strings. `ours` also accepts a different string with the same meaning, and reads the answer
tags if there is no box, which `d1` does only if the box is empty. Meanings are compared by math-verify (the extra
`math`) in a child process: computer algebra can run forever or exhaust memory, and math-verify's own timeouts need
signals and the main thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from unmask.child_process import ChildError, ChildNotStartedError, ChildProcess
from unmask.errors import UnmaskError
from unmask.tasks.checkers import Check
from unmask.tasks.data import Dataset
from unmask.tasks.published.benchmark import Benchmark, Wording, boxes, clip, grade_of, tagged
from unmask.tasks.task import Grade, Metric, Problem, task
from unmask.tasks.worked import worked_check

LONGEST = 400  # characters of an answer that is compared by meaning
_REMOVED = re.compile(r"\n|\\!|\\left|\\right|\^\{\\circ\}|\^\\circ|\\\$|\\?%")
_CHOICE = re.compile(r"[0-9}]\s{0,9}\\(?:text|mathrm|mbox)\{[^{}]{0,200}[0-9]|\b(?:or|and)\b", re.IGNORECASE)
_BASE = re.compile(r"[0-9]_\{?[0-9]")
_SET, _POINT = "set", "point"
_WHOLE = re.compile(r"(-?[0-9]+)/(-?[0-9]+)")


@task("math500")
@dataclass(frozen=True)
class Math500(Benchmark):
    version: ClassVar[int] = 2
    source: ClassVar[Dataset] = Dataset("math500/test.jsonl", "HuggingFaceH4/MATH-500", ("test.jsonl",))
    wording: ClassVar[Wording] = Wording(
        "Solve the mathematics problem. Work through it step by step inside <reasoning></reasoning>, then "
        "give the final answer, simplified and in LaTeX, as \\boxed{answer} inside <answer></answer>."
    )

    def problems(self) -> list[Problem]:
        return [
            Problem(
                f"math500/{row['unique_id']}",
                row["problem"],
                f"<answer>\\boxed{{{row['answer']}}}</answer>",
                {key: row[key] for key in ("answer", "subject", "level")},
            )
            for row in self.source.rows()
        ]

    def answer(self, text: str, metric: Metric = "ours") -> str | None:
        return _read(clip(text), metric)[0]

    def key(self, text: str) -> str:
        answer = self.answer(text)
        return text if answer is None else normalise(answer)

    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade:
        wanted = problem.data["answer"]
        answer, marked = _read(clip(text), metric)
        if answer is None:
            return grade_of(False, None)
        if metric == "ours" and not _alike(wanted, answer):
            return grade_of(False, answer)
        same = normalise(answer) == normalise(wanted)
        if not same and metric == "ours" and marked:
            same = same_meaning(wanted, answer)
        return grade_of(same, answer)

    def visible(self, messages: Sequence[Mapping[str, str]]) -> Check:
        del messages  # only the worked lines can be checked
        return worked_check(_marked, concludes=False)


def _alike(gold: str, answer: str) -> bool:
    """Return False for differences that both comparisons overlook: a choice, a base, a set.

    The normal form drops everything after a unit, and math-verify ignores a base and takes a set for a point.
    """
    single = "," not in gold and not _CHOICE.search(gold)
    if (single and _CHOICE.search(answer)) or (_BASE.search(answer) and not _BASE.search(gold)):
        return False
    return {_SET, _POINT} != {_shape(gold), _shape(answer)}


def _shape(text: str) -> str:
    text = _REMOVED.sub("", text).strip("$ ")
    if text.startswith("\\{") and text.endswith("\\}"):
        return _SET
    return _POINT if text.startswith("(") and text.endswith(")") and "," in text else ""


def _read(text: str, metric: Metric) -> tuple[str | None, bool]:
    """Return the answer and whether a box or tags mark it; unmarked text is only compared as a string."""
    box, tag = next(boxes(text), None), tagged(text)
    if box is not None and box.strip():
        return box.strip(), True
    if tag and (box is not None or metric == "ours"):
        return tag, True
    return text.strip() or None, False


def _marked(text: str) -> str | None:
    """Return the answer if a box or tags mark it."""
    answer, marked = _read(clip(text), "ours")
    return answer if marked else None


def normalise(text: str) -> str:
    """Return the form in which LaTeX answers of MATH (arXiv 2103.03874) are compared as strings."""
    text = text.replace("\\\\", "\\").replace("\\tfrac", "\\frac").replace("\\dfrac", "\\frac")
    text = _REMOVED.sub("", text)
    text = text.partition("\\text{ ")[0]  # a unit
    text = text.replace(" .", " 0.").replace("{.", "{0.")
    if text.startswith("."):
        text = "0" + text
    left, equals, right = text.partition("=")
    if equals and len(left) <= 2 and "=" not in right:
        text = right
    text = re.sub(r"\\sqrt([^{\s\\])", r"\\sqrt{\1}", text).replace(" ", "")
    text = re.sub(r"\\frac([^{\\])([^{\\])", r"\\frac{\1}{\2}", text)  # \frac12
    text = re.sub(r"\\frac([^{\\])\{", r"\\frac{\1}{", text)  # \frac1{2}
    if text == "0.5":
        return "\\frac{1}{2}"
    whole = _WHOLE.fullmatch(text)
    return f"\\frac{{{whole[1]}}}{{{whole[2]}}}" if whole else text


def same_meaning(gold: str, answer: str) -> bool:
    """Return whether two LaTeX answers are equal; those that cannot be read or compared in time are unequal."""
    if find_spec("math_verify") is None:
        raise UnmaskError("comparing LaTeX needs math-verify: pip install 'unmask[math]', or grade with --metric d1")
    if len(answer) > LONGEST:
        return False
    try:
        return _verifier().ask([gold, answer])
    except ChildNotStartedError:
        raise UnmaskError("math-verify does not start: reinstall it with pip install 'unmask[math]'") from None
    except ChildError:
        return False


@cache
def _verifier() -> ChildProcess:
    return ChildProcess(Path(__file__).with_name("math_verify_child.py"), memory=4 << 30, seconds=4)
