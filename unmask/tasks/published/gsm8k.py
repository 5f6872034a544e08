"""GSM8K (arXiv 2110.14168): 1,319 grade-school word problems with a number for an answer.

    {"question": "A robe takes 2 bolts of blue fiber and half that much white fiber.  How many bolts in total …",
     "answer": "It takes 2/2=<<2/2=1>>1 bolt of white fiber\\nSo the total amount of fabric is … bolts\\n#### 3"}

`d1` reads the first box up to its first closing brace and compares floats: it reads `\\boxed{1,200}` as 1, and a
negative gold is never right. `ours` reads the number that the last box states (`quantity.py`), and compares exactly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from unmask.tasks import quantity
from unmask.tasks.data import Dataset
from unmask.tasks.published.benchmark import Benchmark, Wording, boxes, clip, grade_of, loose_boxes, tagged
from unmask.tasks.task import Grade, Metric, Problem, task

_LOOSE = re.compile(r"-?\d+\.?\d*")


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

    split: Literal["test", "train"] = "test"  # the training problems are for choosing settings

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


def gold(worked: str) -> str:
    """The number after `####`, without separators."""
    return worked.rsplit("####", 1)[-1].strip().replace(",", "")


def _read(text: str) -> Fraction | None:
    """The number in the last box that holds a digit; without such a box, in the tag."""
    for box in boxes(text, quantity.LONGEST):
        if any(map(str.isdecimal, box)):
            return quantity.stated(box)
    content = tagged(text) or ""
    return quantity.stated(content) or quantity.last(content)


def _read_d1(text: str) -> float | None:
    for box in loose_boxes(text):
        if box.strip(". \t"):
            number = _float(box.strip(), place=0)
            if number is not None:
                return number
    return _float(tagged(text) or "", place=-1)


def _float(text: str, place: int) -> float | None:
    """The text as a float, else the first or last number in it."""
    try:
        return float(text)
    except ValueError:
        numbers = _LOOSE.findall(text)
        return float(numbers[place]) if numbers else None
