"""What the generated families share: endless problems from a seed, each in one split for good.

The hash of a problem's canonical form alone decides its split, so train, validation and test cannot meet; the
problems of the published benchmarks always count as test.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from importlib.resources import files
from random import Random
from typing import Any, ClassVar, NamedTuple

from unmask.errors import UnmaskError
from unmask.tasks.task import Grade, Metric, Problem, Split

HELD_OUT = frozenset(int(mark, 16) for mark in files("unmask.tasks").joinpath("held_out.txt").read_text().split())
_TAGGED = re.compile(r"<answer>([^<>]*)</answer>")
PATIENCE = 2000  # repeats in a row after which a level counts as told to the end
LONGEST = 20_000  # characters of an output that are read; a worked solution has a few hundred


class Sketch(NamedTuple):
    form: str  # canonical: two sketches with one form are the same problem
    question: str
    gold: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Generated(ABC):
    """A family of problems made from random numbers, with a worked solution for each."""

    version: ClassVar[int] = 1
    family: ClassVar[str]
    levels: ClassVar[range]

    level: int
    split: Split = "test"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.level not in self.levels:
            raise UnmaskError(
                f"{self.family}(level=…) goes from {self.levels[0]} to {self.levels[-1]}, not {self.level}"
            )
        if self.split not in ("train", "validation", "test"):
            raise UnmaskError(f"{self.family}(split=…) is train, validation or test, not {self.split!r}")

    @abstractmethod
    def sketch(self, rng: Random) -> Sketch:
        """One random problem at this level, of whichever split."""

    @abstractmethod
    def answer(self, text: str, metric: Metric = "ours") -> str | None: ...

    @abstractmethod
    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade: ...

    def draw(self, rng: Random) -> Problem:
        """One random problem of this level and split."""
        while True:
            form, question, gold, data = self.sketch(rng)
            if split_of(mark_of(self.family, form)) == self.split:
                return Problem(f"{self.family}-{mark_of(self.family, question):016x}", question, gold, data)

    def problems(self) -> Iterator[Problem]:
        """The same for the same settings, none twice; ends only where a small level has no more."""
        rng = Random(f"{self.family} {self.level} {self.split} {self.seed}")
        seen: set[str] = set()
        repeats = 0
        while repeats < PATIENCE:
            problem = self.draw(rng)
            repeats = repeats + 1 if problem.id in seen else 0
            if not repeats:
                seen.add(problem.id)
                yield problem

    def messages(self, problem: Problem) -> list[dict[str, str]]:
        return [{"role": "user", "content": problem.question}]

    def key(self, text: str) -> str:
        answer = self.answer(text)
        return text if answer is None else answer


def mark_of(family: str, form: str) -> int:
    """64 bits that name a problem for good."""
    return int.from_bytes(blake2b(f"{family} {form}".encode(), digest_size=8).digest(), "big")


def split_of(mark: int) -> Split:
    share = mark % 20
    if share == 0 or mark in HELD_OUT:
        return "test"
    return "validation" if share == 1 else "train"


def tagged(text: str) -> str | None:
    """What stands in the last closed `<answer>…</answer>`."""
    found = _TAGGED.findall(text[-LONGEST:])
    return found[-1].strip() if found else None
