"""Counts the work of Python code in calls, which no other work on the machine changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def operations(work: Callable[[], Any]) -> int:
    """How many functions were called, those written in C included."""
    count = 0

    def see(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
