"""Whether two LaTeX answers mean the same, by math-verify (the extra `math`), asked in a process of its own.

Computer algebra can run for ever or eat all memory, and math-verify's own timeouts need signals and the main
thread. A process that is killed when it is late needs neither, and works from any thread.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from unmask.errors import UnmaskError

SECONDS = 120.0  # the longest wait; the process ends itself by its own CPU time, which a busy machine does not change
LONGEST = 400  # characters of an answer worth asking about


def equal(gold: str, answer: str) -> bool:
    """Never raises for what the texts say: late, broken and unreadable are all unequal."""
    if find_spec("math_verify") is None:
        raise UnmaskError(
            "comparing by meaning needs math-verify: pip install 'unmask[math]', or grade with --metric d1"
        )
    if len(answer) > LONGEST:
        return False
    return _asker().ask(gold, answer)


@cache
def _asker() -> Asker:
    return Asker()


class Asker:
    """The process, started when first needed and again after it was late."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.owner = os.getpid()
        atexit.register(self.stop)

    def ask(self, gold: str, answer: str) -> bool:
        with self.lock:
            if self.process is None or self.process.poll() is not None:
                self._start()
            said = self._exchange(json.dumps([gold, answer]), SECONDS)
            if said is None:
                self.stop()
            return said == "true"

    def _start(self) -> None:
        self.stop()
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("meaning.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        if self._exchange(json.dumps(["1", "1"]), SECONDS) != "true":
            self.stop()
            raise UnmaskError("math-verify does not start: is unmask[math] installed whole?")

    def _exchange(self, line: str, seconds: float) -> str | None:
        process = self.process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
        except OSError:
            return None
        said = b""
        deadline = time.monotonic() + seconds
        while not said.endswith(b"\n"):
            if not select.select([process.stdout], [], [], max(deadline - time.monotonic(), 0))[0]:
                return None
            piece = os.read(process.stdout.fileno(), 64)
            if not piece:
                return None
            said += piece
        return said.decode().strip()

    def stop(self) -> None:
        if self.process is not None and self.owner == os.getpid():
            with contextlib.suppress(OSError):
                self.process.kill()
            self.process.communicate()
        self.process = None
