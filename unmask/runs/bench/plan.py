"""What a benchmark measures, as plain values: sizes, contenders, sweeps, and in which turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from unmask.core import Schedule
from unmask.errors import UnmaskError, nearest

AXES: dict[str, tuple[int, ...]] = {"beams": (2, 4, 8), "length": (64, 128, 256), "problems": (1, 4, 16)}
SWEPT = ("ots-cached", "ots")  # contenders that a sweep takes along, the cheaper first; compiled where they are


@dataclass(frozen=True)
class Sizes:
    """Of one decoding: every contender gets the same."""

    problems: int = 1  # ours has them decoded together, the plain loop one after another
    prompt: int | None = None  # tokens, drawn at random; None: problems of Countdown as they come
    length: int = 256
    block: int = 32
    steps: int | None = None  # in all; half the masks
    beams: int = 4
    temperature: float = 0.4  # of the search; a single path takes the likeliest token

    def __post_init__(self) -> None:
        for name in ("problems", "beams"):
            if getattr(self, name) < 1:
                raise UnmaskError(f"{name}={getattr(self, name)} does not work: choose 1 or more")
        if self.prompt is not None and self.prompt < 1:
            raise UnmaskError(f"prompt={self.prompt} does not work: choose 1 or more tokens")
        _ = self.schedule  # refuses what does not fit

    @property
    def schedule(self) -> Schedule:
        return Schedule.plan(self.length, self.block, self.steps)

    def along(self, axis: str, value: int) -> Sizes:
        """Another value on one axis; steps keep their number a mask."""
        if axis == "length":
            steps = None if self.steps is None else max(1, round(self.steps * value / self.length))
            return replace(self, length=value, block=min(self.block, value), steps=steps)
        return replace(self, **{axis: value})

    def warm(self) -> Sizes:
        """The same shapes in few steps: two a block."""
        return replace(self, steps=min(self.length, 2 * len(self.schedule.quotas)))


@dataclass(frozen=True)
class Trial:
    contender: str
    sizes: Sizes
    axis: str | None = None  # of the sweep it belongs to; None: the comparison itself

    @property
    def name(self) -> str:
        return self.contender if self.axis is None else f"{self.contender}@{self.axis}={getattr(self.sizes, self.axis)}"


@dataclass(frozen=True)
class Plan:
    sizes: Sizes
    contenders: tuple[str, ...]
    sweeps: tuple[tuple[str, tuple[int, ...]], ...] = ()
    repeat: int = 3
    patience: float = 6.0  # seconds: a sweep's trial that took longer is not repeated
    limit: float | None = None  # seconds: nothing is begun after so many
    watched: int = 8  # problems a family on which the embedded model shows how sure a trained one is
    seed: int = 0

    def __post_init__(self) -> None:
        if self.repeat < 1:
            raise UnmaskError(f"repeat={self.repeat} does not work: choose 1 or more")
        if not self.contenders:
            raise UnmaskError("there is nothing to measure: name at least one contender")

    def compared(self) -> list[Trial]:
        return [Trial(name, self.sizes) for name in self.contenders]

    def swept(self) -> Iterator[list[Trial]]:
        """A sweep's trials, cheap ones first; the plan's own sizes are measured in the comparison already."""
        for axis, values in self.sweeps:
            made = [(name, self.sizes.along(axis, value)) for value in sorted(values) for name in self._swept()]
            yield [Trial(name, at, axis) for name, at in made if at != self.sizes]

    def _swept(self) -> list[str]:
        quickest = [name if f"{name}-compiled" not in self.contenders else f"{name}-compiled" for name in SWEPT]
        return [name for name in quickest if name in self.contenders]

    def record(self) -> dict[str, Any]:
        return {**asdict(self), "sweeps": {axis: list(values) for axis, values in self.sweeps}}


def read_sweep(text: str) -> tuple[str, tuple[int, ...]]:
    """`beams` or `beams=2,4,8`."""
    axis, _, said = text.partition("=")
    if axis not in AXES:
        raise UnmaskError(f"unknown sweep {axis!r}: {nearest(axis, AXES)}")
    try:
        values = tuple(int(value) for value in said.split(",")) if said else AXES[axis]
    except ValueError:
        raise UnmaskError(f"sweep {text!r} is no list of whole numbers: write {axis}=2,4,8") from None
    if min(values) < 1:
        raise UnmaskError(f"sweep {text!r} has values below 1: write {axis}=2,4,8")
    return axis, values


def choose(wanted: Sequence[str], known: Sequence[str], usual: Sequence[str]) -> tuple[str, ...]:
    """Contenders by name, in their own order."""
    for name in wanted:
        if name not in known:
            raise UnmaskError(f"unknown contender {name!r}: {nearest(name, known)}")
    return tuple(name for name in known if name in (wanted or usual))
