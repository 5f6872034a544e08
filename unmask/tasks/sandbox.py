"""Programs that a model wrote are run here, and only here.

Two processes, each in a sandbox of its own (`jail.py`): one holds the program, the other the tests
(`inside.py`). Each has no network, no other processes in sight, no files but the interpreter and an empty
folder in memory, no rights, and limits on memory, processor time, wall time, processes, file size and what it
may say; its prints go nowhere.

What this resists: exits before the tests, equality that is always true, patched builtins or checkers,
signals, forged output, fork bombs, floods. The verdict leaves the judge's process on a pipe that the program
does not hold. What it does not resist: a hole in the kernel, or a program that knows the tests by heart and
answers them from a table. The memory limit is for each process, so a program may hold `processes` times as
much.

The sandbox is made of user namespaces, or by bubblewrap where only that may make them. `rlimits` asks for
less: the same two processes under the same limits, but with your files, your network and your other processes
in reach, the judge among them.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from io import FileIO
from pathlib import Path
from typing import IO, Any, Literal

from unmask.errors import UnmaskError
from unmask.tasks import inside, jail

Confinement = Literal["namespaces", "rlimits"]
MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    seconds: int = 10  # of wall time for a program and all its tests; of processor time for each process
    memory: int = 512 * MIB  # address space of each process
    processes: int = 8  # threads count too
    disk: int = 16 * MIB  # of the folder in memory


@dataclass(frozen=True)
class ProgramTest:
    program: str
    tests: tuple[str, ...]  # each run in order, in the judge's process
    names: tuple[str, ...]  # what the tests use of the program
    prelude: str = ""  # run before the tests, in the judge's process: their imports
    setup: str = ""  # run after the program, in its process


@dataclass(frozen=True)
class SandboxResult:
    right: bool
    note: str  # why it is wrong; with what rights it ran where that was less than the sandbox


def run(trial: ProgramTest, confinement: Confinement = "namespaces", limits: Limits | None = None) -> SandboxResult:
    """Run every test against the program. Raises only where there is no sandbox to run it in."""
    made = means() if confinement == "namespaces" else "rlimits"
    verdict = _run(trial, made, limits or Limits())
    if confinement == "rlimits":
        note = "ran under rlimits only"
        return SandboxResult(verdict.right, f"{verdict.note}; {note}" if verdict.note else note)
    return verdict


@cache
def means() -> str:
    """What the sandbox is made of here: `namespaces`, else `bubblewrap`; found by running a program in each."""
    tries = ["namespaces"] if sys.platform == "linux" else []
    if shutil.which("bwrap") and os.getuid() != 0:
        tries.append("bubblewrap")
    hello = ProgramTest("def hello(): return 'hello'", ("assert hello() == 'hello'",), ("hello",))
    said = "a first program got no answer" if tries else "this is not Linux"
    for made in tries:
        try:
            if _run(hello, made, Limits()).right:
                return made
        except UnmaskError as error:
            said = str(error)
    raise UnmaskError(
        f"no sandbox for programs here ({said}): allow unprivileged user namespaces or install bubblewrap 0.8 or newer "
        "(apt-get install bubblewrap), or accept less with --sandbox rlimits"
    )


def _run(trial: ProgramTest, made: str, limits: Limits) -> SandboxResult:
    program = {"role": "program", "program": trial.program, "setup": trial.setup, "names": trial.names}
    judge = {"role": "judge", "prelude": trial.prelude, "tests": trial.tests, "names": trial.names}
    with contextlib.ExitStack() as stack:
        (asked, ask), (replied, reply), (read, verdict) = (_pipe(stack) for _ in range(3))
        sides = [
            stack.enter_context(_process(program, made, limits, (asked, reply))),
            stack.enter_context(_process(judge, made, limits, (replied, ask, verdict))),
        ]
        for end in (asked, ask, replied, reply, verdict):
            end.close()
        return _verdict(_read(read, time.monotonic() + limits.seconds), sides, limits)


def _pipe(stack: contextlib.ExitStack) -> tuple[FileIO, FileIO]:
    read, write = os.pipe()
    return stack.enter_context(FileIO(read, "r")), stack.enter_context(FileIO(write, "w"))


def _read(pipe: FileIO, deadline: float) -> bytes | None:
    """One line, or what there is of it when the other end is gone; nothing at the deadline."""
    line = b""
    while not line.endswith(b"\n") and len(line) < 1 << 16:
        if not select.select([pipe], [], [], max(deadline - time.monotonic(), 0))[0]:
            return None
        piece = pipe.read(1 << 12)
        if not piece:
            break
        line += piece
    return line


def _verdict(line: bytes | None, sides: list[Side], limits: Limits) -> SandboxResult:
    if line is None:
        return SandboxResult(False, f"took longer than {limits.seconds} s")
    said = json.loads(line) if line.endswith(b"\n") else {"right": False, "note": "the tests ended early"}
    if not said["right"]:
        for side in sides:
            if side.refused():
                raise UnmaskError(f"the sandbox could not be entered: {side.words()}")
    return SandboxResult(**said)


@dataclass(frozen=True)
class Side:
    """One of the two processes, seen from outside."""

    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    made: str

    def refused(self) -> bool:
        """Whether it ended before its work began. Only a jail of ours hides the program's own status."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.made == "namespaces" and self.process.wait(timeout=0.2) > 0
        return False

    def words(self) -> str:
        self.errors.seek(0)
        return " ".join(self.errors.read(300).decode(errors="replace").split()) or f"exit {self.process.returncode}"


@contextlib.contextmanager
def _process(job: dict[str, Any], made: str, limits: Limits, keep: tuple[FileIO, ...]) -> Iterator[Side]:
    handles = [end.fileno() for end in keep]
    with tempfile.TemporaryFile() as text, tempfile.TemporaryFile() as errors:
        text.write(json.dumps(job | {"handles": handles} | _confined(made, limits)).encode())
        text.seek(0)
        process = subprocess.Popen(
            [*_wrapper(made, limits), _interpreter(), "-s", "-S", "-P", "-B", "-c", _source()],
            stdin=text,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=handles,
            env={"PYTHONHASHSEED": "0", "LANG": "C.UTF-8"},  # a set's order is the same every time
            cwd="/",
            start_new_session=True,
        )
        try:
            yield Side(process, errors, made)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _confined(made: str, limits: Limits) -> dict[str, Any]:
    """What the process does to itself before anything else."""
    enter = {
        "paths": _readable(),
        "disk": limits.disk,
        "seconds": limits.seconds,
        "outer": _stranger() if os.getuid() == 0 else 0,
    }
    processes = limits.processes + (_others() if made == "rlimits" else 0)
    bounds = {"memory": limits.memory, "cpu": limits.seconds, "processes": processes, "disk": limits.disk}
    return {"enter": enter if made == "namespaces" else None, "limits": bounds}


def _stranger() -> int:
    """For root a user that owns nothing and runs nothing, so that counting its processes counts the program's."""
    ranges = [[int(word) for word in line.split()] for line in Path("/proc/self/uid_map").read_text().splitlines()]
    start, outside, count = max(ranges, key=lambda row: row[2])
    if count > 2:
        return start + random.SystemRandom().randrange(count // 2, count - 1)
    if outside == 0:
        raise UnmaskError("root without other users cannot be kept from starting processes")
    return 0


def _others() -> int:
    """Processes this user has already: the limit counts them all."""
    me = os.getuid()
    count = 0
    for entry in Path("/proc").glob("[0-9]*/task/*"):
        with contextlib.suppress(OSError):
            count += entry.stat().st_uid == me
    return count


def _wrapper(made: str, limits: Limits) -> list[str]:
    if made != "bubblewrap":
        return []
    binds = [word for path in _readable() for word in ("--ro-bind", path, path)]
    inside = ["--size", str(limits.disk), "--tmpfs", "/work", "--chdir", "/work"]
    return [
        "bwrap",
        "--unshare-all",
        "--unshare-user",
        "--disable-userns",
        "--die-with-parent",
        *binds,
        *inside,
        "--",
    ]


@cache
def _readable() -> list[str]:
    """The system's libraries and the interpreter's own folder; a folder inside another is listed once."""
    wanted = ("/usr", "/lib", "/lib32", "/lib64", sys.base_prefix, sys.base_exec_prefix)
    there = list(dict.fromkeys(path for path in wanted if Path(path).is_dir()))
    return [path for path in there if not any(path != other and path.startswith(f"{other}/") for other in there)]


def _interpreter() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


@cache
def _source() -> str:
    return "\n".join([*(Path(str(part.__file__)).read_text() for part in (jail, inside)), "main(enter, limit)"])
