"""What the generated families share: endless problems from a seed, each in one fixed split.

The hash of a problem's canonical form decides its split, so train, validation and test are disjoint; the problems
of the published benchmarks always count as test.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from importlib.resources import files
from random import Random
from typing import Any, ClassVar, NamedTuple, TypeVar

from unmask.errors import UnmaskError
from unmask.tasks.task import Grade, Metric, Problem, Split, Task, task

HELD_OUT = frozenset(int(mark, 16) for mark in files("unmask.tasks").joinpath("held_out.txt").read_text().split())
T = TypeVar("T")
_TAGGED = re.compile(r"<answer>([^<>]*)</answer>")
PATIENCE = 2000  # repeats in a row after which a level counts as exhausted
LONGEST = 20_000  # characters of an output that are read


class Sketch(NamedTuple):
    form: str  # canonical: two sketches with the same form are the same problem
    question: str
    gold: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Generated(Task):
    """A family of random problems, each with a worked solution. It has one metric: `d1` is the same as `ours`."""

    version: ClassVar[int] = 2
    levels: ClassVar[range]
    missing: ClassVar[str] = "no answer"  # the note of an output without an answer

    level: int
    split: Split = "test"  # no problem is in two of them
    seed: int = 0  # another one gives other problems

    def __post_init__(self) -> None:
        if self.level not in self.levels:
            first, last = self.levels[0], self.levels[-1]
            raise UnmaskError(f"{self.family}(level=…) goes from {first} to {last}, not {self.level}")
        if self.split not in ("train", "validation", "test"):
            raise UnmaskError(f"{self.family}(split=…) is train, validation or test, not {self.split!r}")

    @property
    def family(self) -> str:
        return task.name(self)

    @abstractmethod
    def sketch(self, rng: Random) -> Sketch:
        """One random problem at this level, of any split."""

    @abstractmethod
    def read(self, text: str) -> str | None:
        """The answer an output gives."""

    @abstractmethod
    def fault(self, problem: Problem, answer: str) -> str:
        """Why an answer is wrong; empty if it is right."""

    def draw(self, rng: Random) -> Problem:
        """One random problem of this level and split."""
        family = self.family
        while True:
            form, question, gold, data = self.sketch(rng)
            if split_of(mark_of(family, form)) == self.split:
                return Problem(f"{family}-{mark_of(family, question):016x}", question, gold, data)

    def problems(self) -> Iterator[Problem]:
        """The same for the same settings, none twice; ends only if a small level is exhausted."""
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

    def answer(self, text: str, metric: Metric = "ours") -> str | None:
        del metric
        return self.read(text)

    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade:
        del metric
        answer = self.read(text)
        note = self.missing if answer is None else self.fault(problem, answer)
        return Grade(not note, float(not note), answer, note)


def mark_of(family: str, form: str) -> int:
    """64 bits that identify a problem."""
    return int.from_bytes(blake2b(f"{family} {form}".encode(), digest_size=8).digest(), "big")


def split_of(mark: int) -> Split:
    share = mark % 20
    if share == 0 or mark in HELD_OUT:
        return "test"
    return "validation" if share == 1 else "train"


def tagged(text: str) -> str | None:
    """The content of the last closed `<answer>…</answer>`."""
    contents = _TAGGED.findall(text[-LONGEST:])
    return contents[-1].strip() if contents else None


def choose(rng: Random, options: Sequence[T]) -> T:
    return options[int(rng.random() * len(options))]


def between(rng: Random, low: int, high: int) -> int:
    return low + int(rng.random() * (high - low + 1))
