"""Which contenders are measured, at which sizes, and in which order."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from unmask.bench.measurement import Measurement
from unmask.core import Schedule
from unmask.errors import UnmaskError, nearest

LARGEST = 1_000_000  # positions, rows or problems
AXES: dict[str, tuple[int, ...]] = {"beams": (2, 4, 8), "length": (64, 128, 256), "problems": (1, 4, 16)}
SWEPT = ("ots-cached", "ots")  # the contenders of a sweep, cheapest first; their compiled forms if those are measured


# The comments beside the fields are also the help of the command line's options.
@dataclass(frozen=True)
class Sizes:
    problems: int = 1  # how many; the published loops take them one by one, the other contenders together
    prompt: int | None = None  # tokens of random prompts; by default 160 for a shape, else Countdown problems
    length: int = 256  # masks after the prompt; by default 256 for a shape, else 64
    block: int = 32  # masks per block
    steps: int | None = None  # in total; by default half the masks
    beams: int = 4  # rows of the search
    temperature: float = 0.4  # of the search's draws; a single path takes the likeliest token

    def __post_init__(self) -> None:
        for name in ("problems", "beams", "prompt", "length", "block"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= LARGEST:
                raise UnmaskError(f"{name}={value} does not work: choose 1 to {LARGEST}")
        _ = self.schedule  # raises if the sizes do not fit together

    @property
    def schedule(self) -> Schedule:
        return Schedule.plan(self.length, self.block, self.steps)

    def along(self, axis: str, value: int) -> Sizes:
        """Another value on one axis, with the same number of steps per mask."""
        if axis == "length":
            steps = None if self.steps is None else max(1, round(self.steps * value / self.length))
            return replace(self, length=value, block=min(self.block, value), steps=steps)
        return replace(self, **{axis: value})

    def warm_up(self) -> Sizes:
        """The same shapes with two steps per block."""
        return replace(self, steps=min(self.length, 2 * len(self.schedule.quotas)))


@dataclass
class Case:
    """One contender at certain sizes, and its runs so far."""

    contender: str
    sizes: Sizes
    axis: str | None = None  # of the sweep; None in the comparison
    runs: list[Measurement] = field(default_factory=list)
    error: str = ""

    @property
    def name(self) -> str:
        return self.contender if self.axis is None else f"{self.contender}@{self.axis}={getattr(self.sizes, self.axis)}"

    @property
    def seconds(self) -> list[float]:
        return [run.seconds for run in self.runs]

    @property
    def seconds_per_problem(self) -> list[float]:
        return [seconds / self.sizes.problems for seconds in self.seconds]


@dataclass(frozen=True)
class Plan:
    sizes: Sizes
    contenders: tuple[str, ...]
    sweeps: tuple[tuple[str, tuple[int, ...]], ...] = ()
    repeat: int = 3
    patience: float = 6.0  # seconds: cases of a sweep that take longer are not repeated
    limit: float | None = None  # seconds: no run starts after this time
    watched: int = 8  # problems per task on which the embedded model is observed for threshold writing
    seed: int = 0

    def __post_init__(self) -> None:
        if self.repeat < 1:
            raise UnmaskError(f"repeat={self.repeat} does not work: choose 1 or more")
        if self.limit is not None and not 0 <= self.limit < math.inf:
            raise UnmaskError(f"limit={self.limit} does not work: give seconds, 0 or more")
        if not self.contenders:
            raise UnmaskError("there is nothing to measure: name at least one contender")

    def compared(self) -> list[Case]:
        return [Case(name, self.sizes) for name in self.contenders]

    def swept(self) -> Iterator[list[Case]]:
        """The cases of each sweep, cheapest first. The comparison already covers the plan's own sizes."""
        preferred = [name if f"{name}-compiled" not in self.contenders else f"{name}-compiled" for name in SWEPT]
        names = [name for name in preferred if name in self.contenders]
        for axis, values in self.sweeps:
            cases = [Case(name, self.sizes.along(axis, value), axis) for value in sorted(values) for name in names]
            yield [case for case in cases if case.sizes != self.sizes]

    def record(self) -> dict[str, Any]:
        return {**asdict(self), "sweeps": {axis: list(values) for axis, values in self.sweeps}}


def read_sweep(text: str) -> tuple[str, tuple[int, ...]]:
    """`beams` or `beams=2,4,8`."""
    axis, equals, numbers = text.partition("=")
    if axis not in AXES:
        raise UnmaskError(f"unknown sweep {axis!r}: {nearest(axis, AXES)}")
    if equals and not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", numbers):
        raise UnmaskError(f"sweep {text!r} is not a list of whole numbers: write {axis}=2,4,8")
    values = tuple(map(int, numbers.split(","))) if equals else AXES[axis]
    if min(values) < 1:
        raise UnmaskError(f"sweep {text!r} has values below 1: write {axis}=2,4,8")
    return axis, values
