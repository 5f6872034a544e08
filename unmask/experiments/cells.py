"""The cells of an experiment, as plain values that its folder remembers."""

from __future__ import annotations

from dataclasses import dataclass

TEN = (  # the rows of Table 1, in its order
    "low-confidence",
    "low-confidence-vote",
    "random",
    "random-vote",
    "ar",
    "ar-vote",
    "ar-beam",
    "ots-all-blocks",
    "ots-future-masked",
    "ots",
)


@dataclass(frozen=True)
class Method:
    """A row of the paper's tables."""

    name: str  # kebab-case; what users type
    label: str  # as tables show it
    spec: str  # the decoder


@dataclass(frozen=True)
class Part:
    """A rectangle of cells: one run in a folder of its own."""

    name: str
    benchmark: str  # the paper's
    task: str  # what stands for it
    methods: tuple[Method, ...]
    lengths: tuple[int, ...]
    limit: int | None  # problems
    seeds: tuple[int, ...] = (0,)
    samples: int = 1
    cache: str = "none"
    early_end: bool = False

    @property
    def approximate(self) -> str:
        """How, in words; nothing where it is exact."""
        return " + ".join([f"cache {self.cache}"] * (self.cache != "none") + ["early end"] * self.early_end)
