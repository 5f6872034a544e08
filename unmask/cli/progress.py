"""Progress on standard error: a bar or a status line in a terminal, elsewhere a line every half minute."""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unmask.core import Frame, Watch
    from unmask.runs.evaluation import RecordCallback
    from unmask.runs.record import Cell, Record

HEARTBEAT = 30.0  # seconds between lines if standard error is not a terminal


@contextmanager
def heartbeat(report: Callable[[], str]) -> Iterator[None]:
    """Print a line every half minute, so that a log shows that the work goes on."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(HEARTBEAT):
            print(f"unmask: {report()}", file=sys.stderr, flush=True)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _log_line(text: str) -> Iterator[Callable[[str], None]]:
    """Print the latest text every half minute; the yielded function replaces it."""
    latest = deque([text], maxlen=1)
    with heartbeat(lambda: latest[0]):
        yield latest.append


@contextmanager
def status_line(text: str) -> Iterator[Callable[[str], None]]:
    """Show what is being done; the yielded function replaces the text."""
    if not sys.stderr.isatty():
        with _log_line(text) as update:
            yield update
        return
    from rich.console import Console

    with Console(stderr=True).status(text) as status:
        yield status.update


@contextmanager
def watching(verb: str) -> Iterator[Watch]:
    """Yield a watcher of frames that shows the step."""
    with status_line(verb) as update:
        yield lambda numbers, frame: update(f"{verb}: {step_of(frame)}")


def step_of(frame: Frame) -> str:
    """Return the step, and the masks of the text that has most of them."""
    masks = int(frame.canvas.masked.sum(1).max())
    return f"step {frame.step}, {masks} mask{'' if masks == 1 else 's'} left"


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], Any]]:
    """Yield a function that takes how many are done, and of how many."""
    with _bar() as update:
        yield lambda done, total: update(done, total, what)


@contextmanager
def board() -> Iterator[RecordCallback]:
    """Yield a watcher of records that shows progress, rate, cost and the accuracy of the current cell."""
    cells: dict[Cell, list[Record]] = defaultdict(list)
    began = before = 0.0  # time when this run began, and how many records it began with
    with _bar() as update:

        def watch(records: Sequence[Record], done: int, total: int) -> None:
            nonlocal began, before
            for record in records:
                cells[record.cell].append(record)
            if done == len(records):  # a run begins with the records in its folder
                began, before = time.monotonic(), done
            rate = (done - before) / max(time.monotonic() - began, 1e-9)
            last = records[-1] if records else None
            text = f"{cell_text(cells[last.cell])} · {last.decoder}" if last else "starting"
            update(done, total, f"{rate:.1f}/s · {text}")

        yield watch


def cell_text(records: Sequence[Record]) -> str:
    """Return the mean score of a cell's records, with its spread and cost."""
    from unmask.report.gather import result_of
    from unmask.report.statistics import wilson

    result = result_of(records)
    score, failed = result.estimate("score"), f", {result.failed} failed" if result.failed else ""
    low, high = wilson(score.value or 0.0, score.n)
    within = f" ± {100 * score.error:.1f}" if score.error else ""
    counted = f"n={score.n}" if within else f"{100 * low:.0f} to {100 * high:.0f}, n={score.n}"
    passes = fmean(record.cost.forward_passes for record in records)
    return f"{100 * (score.value or 0.0):.1f}{within} % ({counted}), {passes:.0f} forward passes{failed}"


@contextmanager
def _bar() -> Iterator[Callable[[int, int, str], object]]:
    """Yield a function that takes the number done, the total and a remark, which is cut in a narrow terminal."""
    if not sys.stderr.isatty():
        with _log_line("starting") as update:
            yield lambda done, total, text: update(f"{done} of {total}, {text}")
        return
    from unmask.runs.progress import progress_bar

    with progress_bar() as show:
        yield show
