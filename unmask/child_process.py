"""A Python script in a child process with bounded time and memory, for work that may never end or that may crash.

The script is a file that defines `answer(value)`, from a JSON value to a JSON value. This module is run there as well
(`python child_process.py SCRIPT MEMORY SECONDS`): it imports nothing of this package, so a child loads only what its
script imports. Requests and replies are lines of JSON; whatever the script prints is discarded.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import IO, Any


class ChildError(Exception):
    """The script raised an exception; the message is its type and text."""


class ChildStoppedError(ChildError):
    """The child process exceeded a limit or crashed. The next request starts a new one."""


class ChildNotStartedError(ChildError):
    """The script could not be loaded, for example because a package is missing."""


@dataclass(eq=False)
class ChildProcess:
    """Starts when it is first asked and again after it was stopped. Threads take turns; a fork starts its own child."""

    script: Path
    memory: int  # bytes of address space
    seconds: float  # processor time per request, so that a loaded machine does not change the answers
    patience: float = 300.0  # wall-clock seconds per request; only a child that is blocked reaches them
    process: subprocess.Popen[str] | None = field(default=None, init=False)
    lock: Lock = field(default_factory=Lock, init=False)

    def __post_init__(self) -> None:
        atexit.register(self.stop)
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self._forget)

    def ask(self, value: Any) -> Any:
        """Return what the script answers, or raise a `ChildError`."""
        with self.lock:
            try:
                request = json.dumps(value)
                if self.process is None or self.process.poll() is not None:
                    self._start()
                reply = self._exchange(request)
                if reply is None:
                    name = self.script.name
                    raise ChildStoppedError(f"{name} was stopped: it exceeded its time or memory, or crashed")
            except BaseException:  # an interrupted request must not leave its reply for the next one
                self.stop()
                raise
            if reply["last"]:
                self.stop()
        if "error" in reply:
            raise ChildError(reply["error"])
        return reply["value"]

    def stop(self) -> None:
        """End the child process, if there is one."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
        self.process = None

    def _start(self) -> None:
        self.stop()
        # -P: modules are not imported from the folder of the script.
        command = [sys.executable, "-P", __file__, self.script, self.memory, self.seconds]
        self.process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env=os.environ | {"PYTHONHASHSEED": "0"},  # sets of strings have the same order in every child
        )
        if self._exchange(None) is None:
            raise ChildNotStartedError(f"{self.script.name} cannot be started: run `python {self.script}` to see why")

    def _exchange(self, line: str | None) -> dict[str, Any] | None:
        """Send a line, if there is one, and return the next reply; None if the process ended or was too late."""
        process = self.process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if line is not None:
                process.stdin.write(line + "\n")
                process.stdin.flush()
            ready = select.poll()  # unlike select, it takes any number of open files
            ready.register(process.stdout, select.POLLIN | select.POLLHUP)
            if not ready.poll(1000 * self.patience):
                return None
            reply = process.stdout.readline()
        except OSError:
            return None
        return json.loads(reply) if reply.endswith("\n") else None

    def _forget(self) -> None:
        """Leave the process to the parent of a fork, and replace a lock that a thread of the parent may hold."""
        self.process, self.lock = None, Lock()


def serve(script: str, memory: int, seconds: float) -> None:
    """Answer requests until the parent closes the pipe."""
    requests, replies = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    with open(os.devnull, "r+") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(nothing.fileno(), 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt of the terminal is for the parent, which ends this
    limit_memory(memory)
    answer = runpy.run_path(script)["answer"]
    _send(replies, {"started": True})
    for line in requests:
        limit_time(seconds)
        try:
            reply = {"value": answer(json.loads(line))}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        limit_time(0)
        _send(replies, {**reply, "last": not _has_time(seconds)})


def _send(replies: IO[str], reply: dict[str, Any]) -> None:
    replies.write(json.dumps(reply) + "\n")
    replies.flush()


def limit_memory(memory: int) -> None:
    """Lower the limits of this process, never above those it was started with."""
    with contextlib.suppress(ImportError):  # Windows has no resource limits
        import resource

        for kind, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
            _, hard = resource.getrlimit(kind)
            least = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (least, least))


def limit_time(seconds: float) -> None:
    """Let the kernel end this process after this much more processor time; 0 removes the limit."""
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGPROF])
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _has_time(seconds: float) -> bool:
    """Return whether a limit that this process was started with (`ulimit -t`) leaves time for one more request."""
    with contextlib.suppress(ImportError):
        import resource

        most, _ = resource.getrlimit(resource.RLIMIT_CPU)
        return most == resource.RLIM_INFINITY or sum(os.times()[:2]) + seconds + 1 < most
    return True


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
