"""Whether two LaTeX answers have the same meaning, by math-verify (the extra `math`) in a separate process.

Computer algebra can run forever or exhaust memory, and math-verify's own timeouts need signals and the main thread. A
process that is killed when it is late needs neither and works from any thread.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from unmask.errors import UnmaskError
from unmask.tasks.sandbox.run import read_line

SECONDS = 300.0  # the longest wait; the process limits its own processor time, which is what judges
LONGEST = 400  # characters; longer answers are unequal


def equal(gold: str, answer: str) -> bool:
    """Never raises because of the texts: late, broken and unreadable answers are unequal."""
    if find_spec("math_verify") is None:
        raise UnmaskError("comparing LaTeX needs math-verify: pip install 'unmask[math]', or grade with --metric d1")
    if len(answer) > LONGEST:
        return False
    return _verifier().equal(gold, answer)


class Verifier:
    """The process, started when first needed and restarted after it was late."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.owner = os.getpid()
        atexit.register(self.stop)

    def equal(self, gold: str, answer: str) -> bool:
        with self.lock:
            reply = self._ask(gold, answer)
            if reply is None and self.process is not None and self.process.poll() == 0:  # it made way for a fresh one
                reply = self._ask(gold, answer)
            if reply is None:
                self.stop()
            return reply == "true"

    def _ask(self, gold: str, answer: str) -> str | None:
        if self.process is None or self.process.poll() is not None:
            self._start()
        return self._exchange(json.dumps([gold, answer]))

    def _start(self) -> None:
        self.stop()
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("math_verify_child.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        if self._exchange(json.dumps(["1", "1"])) != "true":
            self.stop()
            raise UnmaskError("math-verify does not start: pip install 'unmask[math]' again")

    def _exchange(self, line: str) -> str | None:
        process = self.process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line.encode() + b"\n")
        except OSError:
            return None
        reply = read_line(process.stdout, time.monotonic() + SECONDS)
        return reply.decode().strip() if reply and reply.endswith(b"\n") else None

    def stop(self) -> None:
        if self.process is not None and self.owner == os.getpid():
            with contextlib.suppress(OSError):
                self.process.kill()
            self.process.communicate()
        self.process = None


_verifier = cache(Verifier)
