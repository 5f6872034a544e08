"""Progress on standard error, where it is a terminal."""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from unmask.core import Frame, Watch
from unmask.runs.evaluation import Watcher
from unmask.runs.record import Cell, Record
from unmask.runs.summary import CellSummary


@contextmanager
def watching(verb: str) -> Iterator[Watch | None]:
    """A watcher of frames that shows the step; None where standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with Console(stderr=True).status(verb) as status:

        def show(numbers: list[int], frame: Frame) -> None:
            del numbers
            masks = int(frame.canvas.masked[0].sum())
            status.update(f"{verb}: step {frame.step}, {masks} masks left")

        yield show


@contextmanager
def board() -> Iterator[Watcher | None]:
    """A watcher of records that shows progress, rate, cost and the accuracy of the current cell."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    cells: dict[Cell, CellSummary] = defaultdict(CellSummary)
    began: list[float] = []  # the time of the first call, and how many records there were
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("starting")

        def look(records: Sequence[Record], total: int) -> None:
            for record in records:
                cells[record.cell].add(record)
            done = sum(cell.records for cell in cells.values())
            if not began:
                began.extend((time.monotonic(), done))
            rate = (done - began[1]) / max(time.monotonic() - began[0], 1e-9)
            last = records[-1] if records else None
            text = f"{cells[last.cell]} · {last.decoder}" if last else "starting · "
            progress.update(bar, completed=done, total=total, description=f"{rate:.1f}/s · {text}")

        yield look


@contextmanager
def counting(verb: str) -> Iterator[Callable[[int, int], None] | None]:
    """A watcher of counts that shows how many are done; None where standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with Console(stderr=True).status(verb) as status:
        yield lambda done, total: status.update(f"{verb}: {done} of {total}")
