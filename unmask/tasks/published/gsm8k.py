"""GSM8K (arXiv 2110.14168): 1,319 grade-school word problems whose answer is a number.

    {"question": "A robe takes 2 bolts of blue fiber and half that much white fiber.  How many bolts in total …",
     "answer": "It takes 2/2=<<2/2=1>>1 bolt of white fiber\\nSo the total amount of fabric is … bolts\\n#### 3"}

`d1` reads the first box up to its first closing brace and compares floats: it reads `\\boxed{1,200}` as 1, and a
negative gold is never right. `ours` reads the number that the last box states and compares exactly. A box states a
number in the forms `-\\$1{,}200.50`, `3/4`, `2\\frac{1}{2}` or `x = 18 \\text{ dollars}`; a sum, a product, a power, a
number in a different base or a choice of two states none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from unmask.tasks.checkers import Check
from unmask.tasks.data import Dataset
from unmask.tasks.published.benchmark import Benchmark, Wording, boxes, clip, grade_of, loose_boxes, tagged
from unmask.tasks.task import Grade, Metric, Problem, task
from unmask.tasks.worked import worked_check

_LOOSE = re.compile(r"-?\d+\.?\d*")
LONGEST = 300  # characters of an answer and of a number: longer ones are slow to compare
_WORDS = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mbox|operatorname)\{([^{}]{0,200})\}")
_DECORATION = re.compile(r"\\[$!,;:% ]|[$%°]|\^?\{?\\circ\}?|\\left|\\right|(?<=[A-Za-z])\^\{?[23]\}?(?![0-9])|\*\*")
_FRACTION = re.compile(r"(-?)\\[dt]?frac\{(-?[0-9]{1,300})\}\{(-?[0-9]{1,300})\}")
_DIGITS = r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+"
_NUMBER = rf"(?P<sign>(?<![\w)])[-+] ?)?(?P<whole>{_DIGITS})?(?P<point>\.[0-9]+)?(?P<below>/[0-9]+)?"
_APART = (
    r"(?:[^0-9=+*/^_\\{}.-]|\.(?![0-9]))"  # a character before or after the number: a letter, a bracket, a full stop
)
_UNIT = rf"(?:{_APART}|(?<=[A-Za-z])[-/](?=[A-Za-z]))"
_STATED = re.compile(rf"{_APART}{{0,200}}{_NUMBER}(?P<part> +[0-9]+/[0-9]+)?{_UNIT}{{0,200}}")
_ANY = re.compile(rf"(?<![\w.)}}]){_NUMBER}")
_OPERATOR_BEFORE = re.compile(r"(?:[0-9)}\]] ?[-+*/^_×÷]|\\\w{1,20}|\bor) ?\Z", re.IGNORECASE)
_OPERATOR_AFTER = re.compile(r" ?(?:[-+*/×÷] ?[0-9({]|[\^_]|\\\w)")


@task("gsm8k")
@dataclass(frozen=True)
class GSM8K(Benchmark):
    version: ClassVar[int] = 2
    sources: ClassVar[dict[str, Dataset]] = {
        split: Dataset(f"gsm8k/{split}.jsonl", "openai/gsm8k", (f"main/{split}-00000-of-00001.parquet",))
        for split in ("test", "train")
    }
    wording: ClassVar[Wording] = Wording(
        "Solve the word problem. Work through it step by step inside <reasoning></reasoning>, then give the "
        "final number, and nothing else, as \\boxed{number} inside <answer></answer>."
    )

    split: Literal["test", "train"] = "test"  # train is for choosing settings

    def problems(self) -> list[Problem]:
        golds = [(row["question"], gold(row["answer"])) for row in self.sources[self.split].rows()]
        name = "gsm8k" if self.split == "test" else f"gsm8k-{self.split}"
        return [
            Problem(f"{name}/{place}", question, f"<answer>\\boxed{{{number}}}</answer>", {"answer": number})
            for place, (question, number) in enumerate(golds)
        ]

    def answer(self, text: str, metric: Metric = "ours") -> str | None:
        number = _read_d1(clip(text)) if metric == "d1" else _read(clip(text))
        return None if number is None else str(number)

    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade:
        answer, wanted = self.answer(text, metric), problem.data["answer"]
        if metric == "d1":
            right = answer is not None and not wanted.startswith("-") and float(answer) == float(wanted)
        else:
            right = answer is not None and Fraction(answer) == Fraction(wanted)
        return grade_of(right, answer)

    def visible(self, messages: Sequence[Mapping[str, str]]) -> Check:
        del messages  # only the worked lines can be checked
        return worked_check(self.answer)


def gold(worked: str) -> str:
    """Return the number after `####`, without separators."""
    return worked.rsplit("####", 1)[-1].strip().replace(",", "")


def _read(text: str) -> Fraction | None:
    """Return the number in the last box that contains a digit or, without such a box, in the answer tags."""
    for box in boxes(text, LONGEST):
        if any(map(str.isdecimal, box)):
            return stated(box)
    content = tagged(text) or ""
    return stated(content) or last(content)


def _read_d1(text: str) -> float | None:
    for box in loose_boxes(text):
        if box.strip(". \t"):
            number = _float(box.strip(), place=0)
            if number is not None:
                return number
    return _float(tagged(text) or "", place=-1)


def _float(text: str, place: int) -> float | None:
    """Return the text as a float or, if it is not one, the number at this place in it."""
    try:
        return float(text)
    except ValueError:
        numbers = _LOOSE.findall(text)
        return float(numbers[place]) if numbers else None


def stated(text: str) -> Fraction | None:
    """Return the number that the text, or the right side of its equation, states and nothing else."""
    if len(text) > LONGEST:
        return None
    match = _STATED.fullmatch(_plain(text).rpartition("=")[2])
    return None if match is None else _value(match)


def last(text: str) -> Fraction | None:
    """Return the last number of a sentence, unless it is part of a larger expression."""
    text = _plain(text)
    numbers = [match for match in _ANY.finditer(text) if match["whole"] or match["point"]]
    if not numbers:
        return None
    end = numbers[-1]
    before = text[max(end.start() - 30, 0) : end.start()]
    if _OPERATOR_BEFORE.search(before + (end["sign"] or "").strip()) or _OPERATOR_AFTER.match(text, end.end()):
        return None
    return _value(end)


def _plain(text: str) -> str:
    text = text.replace("−", "-").replace("{,}", ",")
    text = _FRACTION.sub(_slash, _DECORATION.sub("", _WORDS.sub(r" \1", text)))
    return " ".join(text.split())


def _slash(match: re.Match[str]) -> str:
    sign, above, below = match.groups()
    negative = [sign, above[:1], below[:1]].count("-") % 2
    return f" {'-' if negative else ''}{above.lstrip('-')}/{below.lstrip('-')} "


def _value(match: re.Match[str]) -> Fraction | None:
    whole, point = (match["whole"] or "").replace(",", ""), match["point"] or ""
    if not whole + point or len(match[0]) > LONGEST:
        return None
    number = Fraction(whole + point if whole else f"0{point}")
    below, part = int((match["below"] or "/1")[1:]), match.groupdict().get("part") or "0/1"
    above, parts = map(int, part.split("/"))
    if not below or not parts or (above and (match["below"] or point)):
        return None
    number = number / below + Fraction(above, parts)
    return -number if (match["sign"] or "").startswith("-") else number
