"""Checks texts; the script of a child process (`unmask/child_process.py`), because a check may take long."""

import json
import sys
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2]))  # this package, where it is not installed

from unmask.errors import UnmaskError
from unmask.tasks import task
from unmask.tasks.checkers import Check, Checker, check_all, checker


@lru_cache(maxsize=64)
def made(spec: str) -> Checker:
    return checker.make(spec)


@lru_cache(maxsize=64)
def visible(spec: str, messages: str) -> Check | None:
    """Return what a task checks about the outputs for these messages, which are written as JSON."""
    return task.make(spec).visible(json.loads(messages))


def answer(value: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict on `text` of the checkers in `checks` and of what the task, if there is one, can check."""
    spec, messages = value["task"], json.dumps(value["messages"])
    own = visible(spec, messages) if spec else None
    checks = [*map(made, value["checks"]), *([own] if own else [])]
    if not checks:
        raise UnmaskError(f"the question of task {spec!r} shows nothing to check" if spec else "there is no checker")
    return asdict(check_all(checks, value["text"]))
