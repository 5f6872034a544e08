"""A folder that one process at a time writes, and no other program's files are in."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from unmask.errors import UnmaskError

LOCK = ".lock"


def make_folder(folder: Path, marks: Collection[str], what: str) -> None:
    """Make it, unless it holds one of these files; a folder of something else is refused."""
    if folder.exists() and not folder.is_dir():
        raise UnmaskError(f"{str(folder)!r} is a file: a {what} needs a folder")
    folder.mkdir(parents=True, exist_ok=True)
    entries = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".")]
    if entries and not set(marks).intersection(entries):
        raise UnmaskError(f"{str(folder)!r} holds {sorted(entries)[0]!r} and no {what}: choose an empty folder")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Another process that writes this folder is refused until the end."""
    with (folder / LOCK).open("a+b", buffering=0) as lock:
        _hold(lock.fileno(), folder)
        yield


def _hold(lock: int, folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 32, 0).decode(errors="replace").strip()
        who = f" (process {holder})" if holder else ""
        raise UnmaskError(f"another process{who} is writing {str(folder)!r}: wait for it or choose another") from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


_REASONS = {
    errno.ENOENT: "nothing can be made there: choose another folder",
    errno.ENOSPC: "the disk is full: make room",
    errno.EDQUOT: "the disk quota is used up: make room",
    errno.EFBIG: "the file may not grow further: raise its limit",
    errno.EROFS: "the file system is read-only: choose another folder",
    errno.ENOTDIR: "a part of this path is a file: choose another folder",
    errno.EACCES: "permission is missing: choose another folder",
    errno.EPERM: "permission is missing: choose another folder",
}


def refusal(
    folder: Path, error: OSError, what: str = "run", kept: str = "every whole record there is kept"
) -> UnmaskError:
    why = _REASONS.get(error.errno or 0, error.strerror)
    if not os.path.isdir(folder):  # a `Path` would raise where permission is missing
        return UnmaskError(f"the folder {str(folder)!r} of the {what} cannot be made ({why})")
    return UnmaskError(f"the {what} in {str(folder)!r} cannot be written ({why}); {kept}")
