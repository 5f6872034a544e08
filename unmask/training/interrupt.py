"""Ctrl-C between steps, so that what is saved is whole."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def between_steps() -> Iterator[Callable[[], bool]]:
    """Tells whether Ctrl-C was pressed; a second one ends the process at once."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # only that one hears signals
        yield event.is_set
        return

    def hear(number: int, frame: FrameType | None) -> None:
        del number, frame
        event.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield event.is_set
    finally:
        signal.signal(signal.SIGINT, before)
