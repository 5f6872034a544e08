"""The figures of a run, cell by cell, while its records come in."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from unmask.runs.record import Cell, Record


@dataclass
class CellSummary:
    """A problem that failed counts as wrong."""

    scores: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # by problem
    records: int = 0
    rows: int = 0
    failed: int = 0

    def add(self, record: Record) -> None:
        self.scores[record.problem].append(record.score or 0.0)
        self.records += 1
        self.rows += record.cost.forward_passes
        self.failed += record.error is not None

    @property
    def accuracy(self) -> float:
        """Mean score in percent; each problem counts once."""
        means = self._means()
        return 100 * sum(means) / len(means)

    @property
    def error(self) -> float:
        """The standard error of the accuracy; nan for a single problem."""
        return 100 * standard_error(self._means())

    def __str__(self) -> str:
        n, failed = len(self.scores), f", {self.failed} failed" if self.failed else ""
        within = f" ± {self.error:.1f}" if self.error > 0 else ""
        low, high = wilson(self.accuracy / 100, n)
        counted = f"n={n}" if within else f"{100 * low:.0f} to {100 * high:.0f}, n={n}"
        return f"{self.accuracy:.1f}{within} % ({counted}), {self.rows / self.records:.0f} rows{failed}"

    def _means(self) -> list[float]:
        return [sum(scores) / len(scores) for scores in self.scores.values()]


def summarize(records: Iterable[Record]) -> dict[Cell, CellSummary]:
    cells: dict[Cell, CellSummary] = defaultdict(CellSummary)
    for record in records:
        cells[record.cell].add(record)
    return dict(cells)


def wilson(share: float, n: int, z: float = 1.959964) -> tuple[float, float]:
    """The 95 % interval of a share of n problems (Wilson, 1927), which has a width where all of them agree."""
    if n == 0:
        return 0.0, 1.0
    centre, spread = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low, high = ((centre + sign * spread) / (1 + z * z / n) for sign in (-1, 1))
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def standard_error(values: Sequence[float]) -> float:
    """Of a mean."""
    if len(values) < 2:
        return math.nan
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
