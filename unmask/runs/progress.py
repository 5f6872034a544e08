"""Progress of long work: one bar for the whole project, and the figures of each cell while records come in."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import TypeAlias

from unmask.runs.record import Cell, Record

# True shows a bar; a function is called with the number done and the total.
Progress: TypeAlias = bool | Callable[[int, int], None]
BAR = 12  # columns, so that a bar, a count and a time fit a narrow terminal


@contextmanager
def reporting(progress: Progress, total: int) -> Iterator[Callable[[int], object]]:
    """Yield a function of the number done that reports it as `progress` asks."""
    if progress is not True:
        yield (lambda done: progress(done, total)) if callable(progress) else (lambda done: None)
        return
    with progress_bar() as update:
        yield lambda done: update(done, total, "")


@contextmanager
def progress_bar() -> Iterator[Callable[[int, int, str], object]]:
    """Show a bar on standard error; yield a function of the number done, the total and a remark.

    The remark is cut where the terminal is narrow.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    columns = (
        BarColumn(BAR, table_column=Column(no_wrap=True, min_width=BAR)),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True)),
        TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
    )
    with Progress(*columns, console=Console(stderr=True), expand=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda done, total, remark: bar.update(task, completed=done, total=total, description=remark)


@dataclass
class CellSummary:
    """The figures of one cell. A problem that failed counts as wrong."""

    scores: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # by problem
    records: int = 0
    forward_passes: int = 0
    failed: int = 0

    def add(self, record: Record) -> None:
        """Count a record."""
        self.scores[record.problem].append(record.score or 0.0)
        self.records += 1
        self.forward_passes += record.cost.forward_passes
        self.failed += record.error is not None

    @property
    def accuracy(self) -> float:
        """The mean score in percent; each problem counts once."""
        return 100 * fmean(self._means())

    @property
    def error(self) -> float:
        """The standard error of the accuracy; nan for a single problem."""
        return 100 * standard_error(self._means())

    def __str__(self) -> str:
        n, failed = len(self.scores), f", {self.failed} failed" if self.failed else ""
        within = f" ± {self.error:.1f}" if self.error > 0 else ""
        low, high = wilson(self.accuracy / 100, n)
        counted = f"n={n}" if within else f"{100 * low:.0f} to {100 * high:.0f}, n={n}"
        passes = f"{self.forward_passes / self.records:.0f} forward passes"
        return f"{self.accuracy:.1f}{within} % ({counted}), {passes}{failed}"

    def _means(self) -> list[float]:
        return [fmean(scores) for scores in self.scores.values()]


def summarize(records: Iterable[Record]) -> dict[Cell, CellSummary]:
    """Return the figures of each cell."""
    cells: dict[Cell, CellSummary] = defaultdict(CellSummary)
    for record in records:
        cells[record.cell].add(record)
    return dict(cells)


def wilson(share: float, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the 95 % interval of a share of n problems (Wilson, 1927), which has a width even if all of them agree."""
    if n == 0:
        return 0.0, 1.0
    centre, spread = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low, high = ((centre + sign * spread) / (1 + z * z / n) for sign in (-1, 1))
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean; nan for a single value."""
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
