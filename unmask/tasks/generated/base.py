"""The base class of generated tasks: endless problems from a seed, each in one fixed split.

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
from typing import Any, ClassVar, NamedTuple, TypeVar, get_args

from unmask.errors import UnmaskError, check_known
from unmask.tasks.task import Grade, Metric, Problem, Split, Task, task

HELD_OUT = frozenset(int(mark, 16) for mark in files("unmask.tasks").joinpath("held_out.txt").read_text().split())
T = TypeVar("T")
_TAGGED = re.compile(r"<answer>([^<>]*)</answer>")
PATIENCE = 2000  # repeats in a row after which a level counts as exhausted
LONGEST = 20_000  # characters of an output that are read


class Sketch(NamedTuple):
    form: str  # canonical form: two sketches with the same form are the same problem
    question: str
    gold: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Generated(Task):
    """A family of random problems, each with a worked solution. The metric `d1` is the same as `ours`."""

    version: ClassVar[int] = 2
    levels: ClassVar[range]
    missing: ClassVar[str] = "no answer"  # note of an output without an answer

    level: int
    split: Split = "test"  # no problem is in two splits
    seed: int = 0  # chooses the problems

    def __post_init__(self) -> None:
        if self.level not in self.levels:
            raise UnmaskError(f"level must be between {self.levels[0]} and {self.levels[-1]}, got {self.level}")
        check_known(get_args(Split), split=self.split)

    @property
    def family(self) -> str:
        return task.name(self)

    @abstractmethod
    def sketch(self, rng: Random) -> Sketch:
        """Draw a random problem of this level and any split."""

    @abstractmethod
    def read(self, text: str) -> str | None:
        """Return the answer in an output."""

    @abstractmethod
    def fault(self, problem: Problem, answer: str) -> str:
        """Return why an answer is wrong, or an empty text if it is right."""

    def draw(self, rng: Random) -> Problem:
        """Draw a random problem of this level and split."""
        family = self.family
        while True:
            form, question, gold, data = self.sketch(rng)
            if split_of(mark_of(family, form)) == self.split:
                return Problem(f"{family}-{mark_of(family, question):016x}", question, gold, data)

    def problems(self) -> Iterator[Problem]:
        """Yield the same problems for the same settings, none twice; end only if a small level is exhausted."""
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
    """Return 64 bits that identify a problem."""
    return int.from_bytes(blake2b(f"{family} {form}".encode(), digest_size=8).digest(), "big")


def split_of(mark: int) -> Split:
    """Return the split of a problem; those of the published benchmarks are in test."""
    share = mark % 20
    if share == 0 or mark in HELD_OUT:
        return "test"
    return "validation" if share == 1 else "train"


def tagged(text: str) -> str | None:
    """Return the content of the last closed `<answer>…</answer>`."""
    contents = _TAGGED.findall(text[-LONGEST:])
    return contents[-1].strip() if contents else None


def choose(rng: Random, options: Sequence[T]) -> T:
    """Draw one of the options."""
    return options[int(rng.random() * len(options))]


def between(rng: Random, low: int, high: int) -> int:
    """Draw a whole number from low to high."""
    return low + int(rng.random() * (high - low + 1))
