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
        self.rows += record.cost.rows
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
        within = "" if math.isnan(self.error) else f" ± {self.error:.1f}"
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.accuracy:.1f}{within} % (n={len(self.scores)}), {self.rows / self.records:.0f} rows{failed}"

    def _means(self) -> list[float]:
        return [sum(scores) / len(scores) for scores in self.scores.values()]


def summarize(records: Iterable[Record]) -> dict[Cell, CellSummary]:
    cells: dict[Cell, CellSummary] = defaultdict(CellSummary)
    for record in records:
        cells[record.cell].add(record)
    return dict(cells)


def standard_error(values: Sequence[float]) -> float:
    """Of a mean."""
    if len(values) < 2:
        return math.nan
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
