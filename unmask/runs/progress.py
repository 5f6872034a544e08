"""Telling how many of many are done: a bar, or a function of the caller's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Progress: TypeAlias = bool | Callable[[int, int], None]  # True shows a bar; a function is told how many are done of all


@contextmanager
def telling(progress: Progress, total: int) -> Iterator[Callable[[int], object]]:
    """Called with how many are done."""
    if progress is not True:
        yield (lambda done: progress(done, total)) if callable(progress) else (lambda done: None)
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (bars.BarColumn(), bars.MofNCompleteColumn(), bars.TimeRemainingColumn())
    with bars.Progress(*columns, console=Console(stderr=True)) as bar:
        place = bar.add_task("", total=total)
        yield lambda done: bar.update(place, completed=done)
