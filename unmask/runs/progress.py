"""Progress of long work: one bar for the whole project."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

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
