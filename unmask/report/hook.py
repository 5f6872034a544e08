"""A run's figures for a tracker of experiments, such as Weights & Biases or MLflow: names and numbers, as they come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from unmask.runs.record import Cell, Record
from unmask.runs.progress import CellSummary

Log = Callable[[dict[str, float], int], object]  # figures by name, and the number of records so far


class Hook:
    """Watches `evaluate`: after each batch `log` is called with the figures of every cell that has new records."""

    def __init__(self, log: Log):
        self.log = log
        self.cells: dict[Cell, CellSummary] = defaultdict(CellSummary)

    def __call__(self, records: Sequence[Record], done: int, total: int) -> None:
        for record in records:
            self.cells[record.cell].add(record)
        figures = {"records": float(done), "total": float(total)}
        for cell in dict.fromkeys(record.cell for record in records):
            figures |= {f"{name}/{label(cell)}": value for name, value in _figures(self.cells[cell]).items()}
        self.log(figures, done)


def label(cell: Cell) -> str:
    """Of letters, digits and the signs that trackers take in a name."""
    words = f"{cell.model} {cell.task} {cell.decoder} L{cell.length}"
    return "".join(sign if sign.isalnum() or sign in "-_. " else " " for sign in words).strip()


def _figures(summary: CellSummary) -> dict[str, float]:
    return {
        "accuracy": summary.accuracy,
        "forward_passes": summary.forward_passes / summary.records,
        "failed": float(summary.failed),
    }
