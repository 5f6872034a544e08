"""Progress on standard error: a bar in a terminal, elsewhere a line every half minute."""

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from unmask.core import Frame, Watch
from unmask.runs.evaluation import RecordCallback
from unmask.runs.record import Cell, Record
from unmask.runs.summary import CellSummary

HEARTBEAT = 30.0  # seconds between lines where standard error is not a terminal
BAR = 12  # columns, so that a bar, a count and a time fit a narrow terminal


@contextmanager
def heartbeat(say: Callable[[], str]) -> Iterator[None]:
    """A line every half minute, so that whoever reads a log sees that the work goes on."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(HEARTBEAT):
            print(f"unmask: {say()}", file=sys.stderr, flush=True)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def status_line(text: str) -> Iterator[Callable[[str], None]]:
    """A line that says what is being done; what is yielded is called with each new one."""
    line = text

    def tell(words: str) -> None:
        nonlocal line
        line = words
        if status is not None:
            status.update(words)

    status = Console(stderr=True).status(text) if sys.stderr.isatty() else None
    with status or heartbeat(lambda: line):
        yield tell


@contextmanager
def watching(verb: str) -> Iterator[Watch]:
    """A watcher of frames that shows the step."""
    with status_line(verb) as tell:
        yield lambda numbers, frame: tell(f"{verb}: {step_of(frame)}")


def step_of(frame: Frame) -> str:
    """With the masks of the text that has most of them."""
    masks = int(frame.canvas.masked.sum(1).max())
    return f"step {frame.step}, {masks} mask{'' if masks == 1 else 's'} left"


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Called with how many are done, and of how many."""
    with _bar() as update:

        def count(done: int, total: int) -> None:
            update(done, total, what)

        yield count


@contextmanager
def board() -> Iterator[RecordCallback]:
    """A watcher of records that shows progress, rate, cost and the accuracy of the current cell."""
    cells: dict[Cell, CellSummary] = defaultdict(CellSummary)
    began = before = 0.0  # when this run began, and how many records it began with
    with _bar() as update:

        def look(records: Sequence[Record], done: int, total: int) -> None:
            nonlocal began, before
            for record in records:
                cells[record.cell].add(record)
            if done == len(records):  # a run begins, with what its folder holds
                began, before = time.monotonic(), done
            rate = (done - before) / max(time.monotonic() - began, 1e-9)
            last = records[-1] if records else None
            text = f"{cells[last.cell]} · {last.decoder}" if last else "starting"
            update(done, total, f"{rate:.1f}/s · {text}")

        yield look


@contextmanager
def _bar() -> Iterator[Callable[[int, int, str], None]]:
    """Takes the done, the total and a remark, which is cut where the terminal is narrow."""
    if not sys.stderr.isatty():
        line = "starting"

        def note(done: int, total: int, text: str) -> None:
            nonlocal line
            line = f"{done} of {total}, {text}"

        with heartbeat(lambda: line):
            yield note
        return
    remark = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    columns = (
        BarColumn(BAR, table_column=Column(no_wrap=True, min_width=BAR)),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True)),
        remark,
    )
    with Progress(*columns, console=Console(stderr=True), expand=True) as progress:
        place = progress.add_task("starting", total=None)
        yield lambda done, total, text: progress.update(place, completed=done, total=total, description=text)
