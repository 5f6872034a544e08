"""Progress on standard error, where a person is watching."""

import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from unmask.core import Frame, Watch
from unmask.runs.evaluation import Watcher
from unmask.runs.record import Cell, Record
from unmask.runs.standing import Standing


@contextmanager
def watching(what: str) -> Iterator[Watch | None]:
    """A watcher of frames that shows the step, or nothing when standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with Console(stderr=True).status(what) as status:

        def show(numbers: list[int], frame: Frame) -> None:
            del numbers
            masks = int(frame.canvas.masked[0].sum())
            status.update(f"{what}: step {frame.step}, {masks} masks left")

        yield show


@contextmanager
def board() -> Iterator[Watcher | None]:
    """A watcher of a run's records: how far, how fast, at what cost, and how right the cell at hand is."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    known: dict[Cell, Standing] = defaultdict(Standing)
    began: list[float] = []  # when the first look was taken, and how many records there were
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("starting")

        def look(records: Sequence[Record], total: int) -> None:
            for record in records:
                known[record.cell].add(record)
            done = sum(standing.records for standing in known.values())
            if not began:
                began.extend((time.monotonic(), done))
            rate = (done - began[1]) / max(time.monotonic() - began[0], 1e-9)
            said = known[records[-1].cell].said() if records else "starting"
            words = f"{rate:.1f}/s · {said} · {records[-1].decoder if records else ''}"
            progress.update(bar, completed=done, total=total, description=words)

        yield look
