"""Runs in processes of their own, to be watched and killed. Only what descends from them is ever touched."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# Clusters of these tests know one another by a word made for this process alone; none is written to a home folder.
ENVIRON = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), "RAY_USAGE_STATS_ENABLED": "0"}


@contextlib.contextmanager
def evaluating(*words: str, path: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """`unmask eval`, with another folder of modules where one is given."""
    places = [str(ROOT), *([str(path)] if path else [])]
    environ = os.environ | ENVIRON | {"PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    run = subprocess.Popen([sys.executable, "-m", "unmask", "eval", *words], env=environ, cwd=ROOT, **pipes)
    try:
        yield run
    finally:
        children = descendants(run.pid)
        for pid in [run.pid, *children]:
            with contextlib.suppress(ProcessLookupError):
                if pid != run.pid or run.poll() is None:
                    os.kill(pid, signal.SIGKILL)
        run.wait()


def finished(*words: str, path: Path | None = None, seconds: float = 300) -> tuple[int, str, str]:
    with evaluating(*words, path=path) as run:
        out, err = run.communicate(timeout=seconds)
        return run.returncode, out, err


def descendants(pid: int) -> list[int]:
    """Children, and theirs."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, IndexError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(entry.name))
    pids, ahead = [], [pid]
    while ahead:
        children = parents.get(ahead.pop(), [])
        pids += children
        ahead += children
    return pids


def actors(pid: int) -> list[int]:
    """Ray's workers that hold one of our actors."""
    pids = []
    for child in descendants(pid):
        with contextlib.suppress(OSError):
            if re.match(rb"ray::(Worker|ReplicaActor)", (Path("/proc") / str(child) / "cmdline").read_bytes()):
                pids.append(child)
    return pids


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for_lines(path: Path, count: int, run: subprocess.Popen[str], seconds: float = 120) -> bool:
    """Until the file has so many; False where the run ended before."""
    deadline = time.monotonic() + seconds
    while lines(path) < count:
        if run.poll() is not None:
            return False
        assert time.monotonic() < deadline, f"{lines(path)} of {count} lines after {seconds} s"
        time.sleep(0.005)
    return True
