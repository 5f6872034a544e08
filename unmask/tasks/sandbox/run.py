"""Runs programs that a model wrote, in the only place where they are run.

Two processes run, each in its own sandbox (`confine.py`): one holds the program, the other the tests (`child.py`).
Neither has network access, sees other processes, or has any privileges. The only files are the interpreter with what it
loads and an empty folder in memory. Memory, processor time, processes, file size and messages are limited; prints are
discarded. System calls that namespaces do not cover are refused.

This resists early exits, objects that equal everything, patched builtins or checkers, signals, forged output, fork
bombs and floods. The verdict leaves the judge's process on a pipe that the program does not have. It does not resist
a kernel vulnerability, or a program that has memorised the answers to the tests. The memory limit is per process, so
a program may use `processes` times as much. docs/tasks.md has a table of attacks.

The sandbox uses user namespaces, directly or through bubblewrap. `rlimits` is weaker: the same two processes under the
same limits, but the user's files and other processes, including the judge, are within reach, and a process that the
program puts into the background outlives it.
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
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from io import FileIO
from pathlib import Path
from typing import IO, Any, Literal

from unmask.errors import UnmaskError
from unmask.tasks.sandbox import child, confine

Confinement = Literal["namespaces", "rlimits"]
MIB = 1 << 20
LONGEST_VERDICT = 4096  # bytes; a line of at most this length is written at once
# A fixed order of sets; one memory pool, because a pool per thread would take 64 MiB of address space each.
ENVIRONMENT = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "MALLOC_ARENA_MAX": "1"}
# The interpreter runs this: it loads every extension module and lists the libraries that were mapped.
_PROBE = """
import ctypes, json, os, sys
folders = [folder for folder in sys.path if os.path.isdir(folder)]
names = {entry.split(".")[0] for folder in folders for entry in os.listdir(folder) if ".so" in entry}
for name in names - {"_tkinter"}:  # there is no screen
    try:
        __import__(name)
    except BaseException:
        pass
try:
    ctypes.CDLL("libgcc_s.so.1")  # glibc loads it when the first thread ends
except OSError:
    pass
mapped = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if "/" in line}
print(json.dumps([folders, sorted(mapped)]))
"""
# Files that zoneinfo and locale of the standard library read.
DATA = ("/usr/share/zoneinfo", "/usr/lib/locale/C.utf8", "/usr/lib/locale/C.UTF-8")


@dataclass(frozen=True)
class Limits:
    seconds: int = 10  # processor time per process, for a program and all its tests; also the longest idle time
    patience: int = 120  # wall-clock time
    memory: int = 512 * MIB  # address space per process
    processes: int = 16  # threads count too
    disk: int = 16 * MIB  # size of the folder in memory


@dataclass(frozen=True)
class ProgramTest:
    program: str
    tests: tuple[str, ...]  # run in order, in the judge's process
    names: tuple[str, ...]  # names of the program that the tests use
    prelude: str = ""  # run before the tests, in the judge's process, for their imports
    before: str = ""  # run before the program, in its process
    setup: str = ""  # run after the program, in its process


@dataclass(frozen=True)
class SandboxResult:
    right: bool
    note: str  # why it is wrong, and whether it ran without the full sandbox


def run(test: ProgramTest, confinement: Confinement = "namespaces", limits: Limits | None = None) -> SandboxResult:
    """Run every test against the program; raise only if no sandbox is available."""
    method = sandbox_method() if confinement == "namespaces" else "rlimits"
    result = _run(test, method, limits or Limits())
    if confinement == "rlimits":
        note = "ran under rlimits only"
        return SandboxResult(result.right, f"{result.note}; {note}" if result.note else note)
    return result


@cache
def sandbox_method() -> str:
    """Return how programs are confined on this machine: `namespaces` or `bubblewrap`, the first that runs a program."""
    methods = ["namespaces"] if sys.platform == "linux" else []
    if shutil.which("bwrap") and os.getuid() != 0:
        methods.append("bubblewrap")
    hello = ProgramTest("def hello(): return 'hello'", ("assert hello() == 'hello'",), ("hello",))
    reason = "a test program returned nothing" if methods else "this is not Linux"
    for method in methods:
        try:
            if _run(hello, method, Limits()).right:
                return method
        except UnmaskError as error:
            reason = str(error)
    raise UnmaskError(
        f"there is no sandbox for programs ({reason}): allow unprivileged user namespaces, install bubblewrap 0.8 or "
        "newer (apt-get install bubblewrap), or accept a weaker one with --sandbox rlimits"
    )


def _run(test: ProgramTest, method: str, limits: Limits) -> SandboxResult:
    parts = {"before": test.before, "program": test.program, "setup": test.setup}
    program = {"role": "program", "names": test.names, **parts}
    judge = {"role": "judge", "prelude": test.prelude, "tests": test.tests, "names": test.names}
    with contextlib.ExitStack() as stack:
        (calls_in, calls_out), (replies_in, replies_out), (verdict_in, verdict_out) = (_pipe(stack) for _ in range(3))
        sides = [
            stack.enter_context(_process(program, method, limits, (calls_in, replies_out))),
            stack.enter_context(_process(judge, method, limits, (replies_in, calls_out, verdict_out))),
        ]
        for end in (calls_in, calls_out, replies_in, replies_out, verdict_out):
            end.close()
        if not _wait(verdict_in, [side.process.pid for side in sides], limits):
            return SandboxResult(False, "took too long")
        line = verdict_in.read(LONGEST_VERDICT)
        result = json.loads(line) if line.endswith(b"\n") else {"right": False, "note": "the tests ended early"}
        if not result.pop("started", False) and method == "namespaces":
            for side in sides:
                side.check_entered(limits.seconds)
        return SandboxResult(**result)


def _wait(verdict: FileIO, pids: list[int], limits: Limits) -> bool:
    """Return whether the verdict came within the limits of processor time, wall-clock time and idle time.

    A loaded machine slows a program down but does not make it idle: a hundredth of a processor counts as work.
    """
    began = active = time.monotonic()
    work = 0.0
    while not select.select([verdict], [], [], 0.25)[0]:
        now, done = time.monotonic(), processor_time(pids)
        if not done or abs(done - work) > limits.seconds / 100:  # it is 0 where there is no /proc
            work, active = done, now
        if done > 3 * limits.seconds or now - began > limits.patience or now - active > limits.seconds:
            return False
    return True


def processor_time(pids: list[int]) -> float:
    """Return the processor time of these processes, their descendants and the ended ones they waited for."""
    children: dict[int, list[int]] = defaultdict(list)
    ticks: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            words = entry.read_text(errors="replace").rpartition(")")[2].split()
            children[int(words[1])].append(int(entry.parent.name))
            ticks[int(entry.parent.name)] = sum(map(int, words[11:15]))
    family = list(pids)
    for pid in family:  # grows during the loop
        family += children[pid]
    return sum(ticks.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK")


def _pipe(stack: contextlib.ExitStack) -> tuple[FileIO, FileIO]:
    read, write = os.pipe()
    return stack.enter_context(FileIO(read, "r")), stack.enter_context(FileIO(write, "w"))


@dataclass(frozen=True)
class Side:
    """One of the two processes, seen from outside."""

    process: subprocess.Popen[bytes]
    errors: IO[bytes]

    def check_entered(self, seconds: float) -> None:
        """Raise if it ended before its work began: `confine.py` hides the exit status of the program."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self.process.wait(timeout=seconds) > 0:
                self.errors.seek(0)
                text = " ".join(self.errors.read(300).decode(errors="replace").split())
                raise UnmaskError(f"the sandbox could not be entered: {text or f'exit {self.process.returncode}'}")


@contextlib.contextmanager
def _process(job: dict[str, Any], method: str, limits: Limits, keep: tuple[FileIO, ...]) -> Iterator[Side]:
    handles = [end.fileno() for end in keep]
    with tempfile.TemporaryFile() as text, tempfile.TemporaryFile() as errors:
        text.write(json.dumps(job | {"handles": handles} | _confined(method, limits)).encode())
        text.seek(0)
        process = subprocess.Popen(
            [*_wrapper(method, limits), interpreter(), "-s", "-S", "-P", "-B", "-c", _source()],
            stdin=text,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=handles,
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
        try:
            yield Side(process, errors)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _confined(method: str, limits: Limits) -> dict[str, Any]:
    """Return how the process confines itself before anything else."""
    if method == "rlimits":
        limits = replace(limits, processes=limits.processes + _own_processes())
    confined = {"method": method, "limits": asdict(limits)}
    if method == "namespaces":
        confined |= {"runtime": asdict(runtime()), "outer": _unused_user() if os.getuid() == 0 else 0}
    return confined


def _unused_user() -> int:
    """Return, for root, a user that owns and runs nothing, so that only the program's processes count."""
    ranges = [[int(word) for word in line.split()] for line in Path("/proc/self/uid_map").read_text().splitlines()]
    start, outside, count = max(ranges, key=lambda row: row[2])
    if count > 2:
        return start + random.SystemRandom().randrange(count // 2, count - 1)
    if outside == 0:
        raise UnmaskError("root cannot be kept from starting processes where there are no other users")
    return 0


def _own_processes() -> int:
    """Count the processes and threads that this user already runs, because the limit counts them too."""
    me = os.getuid()
    count = 0
    for entry in Path("/proc").glob("[0-9]*/task/*"):
        with contextlib.suppress(OSError):
            count += entry.stat().st_uid == me
    return count


def _wrapper(method: str, limits: Limits) -> list[str]:
    if method != "bubblewrap":
        return []
    here = runtime()
    binds = [word for path in here.paths for word in ("--ro-bind", path, path)]
    hidden = [word for path in here.hidden for word in ("--size", "4096", "--tmpfs", path)]
    links = [word for path, target in here.links for word in ("--symlink", target, path)]
    devices = ["--dev", "/dev", "--size", "65536", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    folder = ["--size", str(limits.disk), "--tmpfs", "/work", "--remount-ro", "/", "--chdir", "/work"]
    confine = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"]
    return [shutil.which("bwrap") or "bwrap", *confine, *binds, *hidden, *links, *devices, *folder, "--"]


@cache
def _source() -> str:
    parts = [Path(str(part.__file__)).read_text() for part in (confine, child)]
    return "\n".join([*parts, "main(enter, limit, refuse_system_calls)"])


@dataclass(frozen=True)
class Runtime:
    """The files that a bare Python interpreter needs: all that a program in the sandbox can see of this machine."""

    paths: list[str]  # the interpreter, the standard library's folders, shared libraries
    hidden: list[str]  # folders of installed packages inside them
    links: list[tuple[str, str]]  # names under which libraries are looked for, and their targets


def interpreter() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


@cache
def runtime() -> Runtime:
    probe = [interpreter(), "-I", "-S", "-B", "-c", _PROBE]
    try:
        output = subprocess.run(probe, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, cwd="/").stdout
        folders, mapped = json.loads(output.splitlines()[-1])
    except (OSError, subprocess.CalledProcessError, ValueError, IndexError):
        raise UnmaskError(f"{interpreter()} does not report which libraries it loads") from None
    every = dict.fromkeys([*map(os.path.realpath, folders), *filter(os.path.isdir, DATA)])
    folders = [folder for folder in every if not _inside(folder, every)]
    libraries = [path for path in mapped if Path(path).is_file() and not _inside(path, folders)]
    hidden = [str(path) for folder in folders for path in Path(folder).glob("*-packages") if path.is_dir()]
    return Runtime([*folders, *dict.fromkeys([interpreter(), *libraries])], hidden, _links(libraries))


def _inside(path: str, folders: Iterable[str]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)


def _links(libraries: list[str]) -> list[tuple[str, str]]:
    """Return links such as `libz.so.1` to `libz.so.1.3`, the loader's own name, and `/lib` to `/usr/lib`."""
    roots = [path for path in ("/lib", "/lib32", "/lib64", "/usr/lib64") if Path(path).is_symlink()]
    folders = {os.path.realpath(path) for path in ("/lib64", "/usr/lib64", *map(os.path.dirname, libraries))}
    entries = [entry for folder in sorted(folders) if Path(folder).is_dir() for entry in os.scandir(folder)]
    names = [entry.path for entry in entries if entry.is_symlink() and os.path.realpath(entry.path) in libraries]
    return [(path, os.path.realpath(path)) for path in (*roots, *sorted(names))]
