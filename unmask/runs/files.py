"""Files that appear whole or not at all, JSON for files and browsers, and folders that one process at a time writes."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import math
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file that appears whole or not at all, and is on the disk when this returns.

    Pipes and devices such as `/dev/stdout` are written to directly; a link is followed.
    """
    data = content if isinstance(content, bytes) else content.encode()
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    path = Path(os.path.realpath(path))
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb", buffering=0) as file:
            write_all(file.fileno(), data)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_output(path: str | os.PathLike[str], text: str, what: str) -> None:
    """Write a file that a user named, whole or not at all; `what` it holds is named if it cannot be written."""
    try:
        write_whole(Path(path), text)
    except OSError as error:
        raise UnmaskError(f"the {what} cannot be written to {str(path)!r}: {error.strerror}") from None


def write_all(file: int, data: bytes) -> None:
    """Write bytes to an open file. They are on the disk when this returns."""
    rest = memoryview(data)
    while rest:  # the system may write less than it was given
        rest = rest[os.write(file, rest) :]
    os.fsync(file)


def sync_folder(folder: Path) -> None:
    """Put the names of new files in a folder on the disk."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def strict_json(value: Any) -> str:
    """Return JSON that browsers read: null for an infinity, a question mark for half a surrogate pair."""
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(finite_values(value), separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()


def finite_values(value: Any) -> Any:
    """Return a value with None for every number in it that is not finite."""
    if isinstance(value, dict):
        return {key: finite_values(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite_values(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_json_lines(path: str | os.PathLike[str], form: str, version: int) -> list[Any]:
    """Read all lines of a file whose first line names this format and version."""
    if Path(path).is_dir():
        inside = next(iter(sorted(Path(path).glob("traces/*.jsonl"))), None)
        raise UnmaskError(f"{str(path)!r} is a folder: name a file in it" + (f", such as {inside}" if inside else ""))
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UnmaskError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:  # perhaps cut within a character
        text = error.object[: error.start].decode() + "\ufffd"
    lines = [_parse(line) for line in text.removesuffix("\n").split("\n")]
    if lines[0] is None and text.startswith(f'{{"format": "{form}"'):
        raise UnmaskError(f"{str(path)!r} is cut off in its first line: make it again")
    if not isinstance(lines[0], dict) or lines[0].get("format") != form:
        raise UnmaskError(f"{str(path)!r} is not an {form} file: its first line does not name that format")
    if lines[0].get("version") != version:
        raise UnmaskError(f"{str(path)!r} must have version {version}, got {lines[0].get('version')}")
    if None in lines:
        raise UnmaskError(f"{str(path)!r} is cut off or damaged at line {lines.index(None) + 1}: make it again")
    return lines


def _parse(line: str) -> Any:
    """Return the value of a line, or None if it is not JSON."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def check_writable(path: Path) -> None:
    """Refuse a path that nothing can be written to, before the work rather than after it."""
    if path.is_dir():
        raise UnmaskError(f"{str(path)!r} is a folder: name a file in it")
    if path.parent.is_file():
        raise UnmaskError(f"{str(path.parent)!r} is a file: {path.name!r} cannot be written into it")
    if not path.parent.is_dir():
        raise UnmaskError(f"there is no folder {str(path.parent)!r} to write {path.name!r} into: make it first")
    if not os.access(path.parent, os.W_OK):
        raise UnmaskError(f"nothing can be written into {str(path.parent)!r}: choose a different folder")


LOCK = ".lock"


def make_folder(folder: Path, marks: Collection[str], what: str) -> None:
    """Make a folder, or accept one that holds one of the files `marks`; a folder of something else is refused."""
    if folder.exists() and not folder.is_dir():
        raise UnmaskError(f"{str(folder)!r} is a file: a {what} needs a folder")
    folder.mkdir(parents=True, exist_ok=True)
    entries = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".")]
    if entries and not set(marks).intersection(entries):
        raise UnmaskError(f"{str(folder)!r} holds {sorted(entries)[0]!r} and no {what}: choose an empty folder")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, so that other processes are refused."""
    with (folder / LOCK).open("a+b", buffering=0) as lock:
        _hold(lock.fileno(), folder)
        yield


def _hold(lock: int, folder: Path) -> None:
    """Lock a file and write the number of this process into it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 32, 0).decode(errors="replace").strip()
        who = f" (process {holder})" if holder else ""
        raise UnmaskError(
            f"another process{who} is writing {str(folder)!r}: wait for it, or choose a different folder"
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


REASONS = {  # what a user can do about an error of the system
    errno.ENOENT: "nothing can be made there: choose a different folder",
    errno.ENOSPC: "the disk is full: make room",
    errno.EDQUOT: "the disk quota is used up: make room",
    errno.EFBIG: "the file may not grow further: raise its limit",
    errno.EROFS: "the file system is read-only: choose a different folder",
    errno.ENOTDIR: "a part of this path is a file: choose a different folder",
    errno.EACCES: "permission is missing: choose a different folder",
    errno.EPERM: "permission is missing: choose a different folder",
}


@contextlib.contextmanager
def refusing(folder: Path, what: str = "run", kept: str = "every whole record there is kept") -> Iterator[None]:
    """Turn errors of the system while a folder is written into a sentence."""
    try:
        yield
    except OSError as error:
        why = REASONS.get(error.errno or 0, error.strerror)
        if not os.path.isdir(folder):  # a `Path` would raise where permission is missing
            raise UnmaskError(f"the folder {str(folder)!r} of the {what} cannot be made ({why})") from None
        raise UnmaskError(f"the {what} in {str(folder)!r} cannot be written ({why}); {kept}") from None
