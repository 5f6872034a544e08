"""Progress on standard error, where a person is watching."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from unmask.core import Frame, Watch


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
