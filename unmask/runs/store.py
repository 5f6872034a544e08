"""A run's folder: `run.json` describes the run, `records.jsonl` grows by whole lines. A killed run can be resumed.

One process writes at a time, held to it by a lock. A line counts once its newline is on the disk; what follows the last
newline was cut off by a crash: it is dropped, and its problem is done again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError
from unmask.runs.record import Name, Record, check_format, read_record

HEAD, RECORDS, LOCK = "run.json", "records.jsonl", ".lock"


@dataclass(frozen=True)
class Run:
    """A run as it was read from its folder."""

    folder: Path
    head: dict[str, Any]  # run.json
    records: list[Record]  # sorted by name, whatever order they were made in

    @property
    def spec(self) -> dict[str, Any]:
        return self.head["spec"]


def read_run(folder: str | os.PathLike[str]) -> Run:
    """A finished run, or one that is still growing."""
    folder = Path(folder)
    head = read_head(folder)
    if head is None:
        raise UnmaskError(f"{str(folder)!r} is not a run: it has no {HEAD}")
    records, _ = read_records(folder / RECORDS)
    return Run(folder, head, sorted(records, key=lambda record: record.name))


def read_head(folder: Path) -> dict[str, Any] | None:
    path = folder / HEAD
    try:
        head = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnmaskError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except ValueError:
        raise UnmaskError(f"{str(path)!r} is not JSON: it was not written by unmask, or was changed since") from None
    if not isinstance(head, dict) or "spec" not in head:
        raise UnmaskError(f"{str(path)!r} does not describe a run: it has no spec")
    check_format(head.get("format"), repr(str(folder)))
    return head


def read_records(path: Path) -> tuple[list[Record], int]:
    """The records, and the number of bytes they fill: the rest is an incomplete line."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise UnmaskError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    lines = raw.split(b"\n")
    torn = len(lines.pop())
    records: dict[Name, Record] = {}
    for number, line in enumerate(lines, 1):
        try:
            record = read_record(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines) and not torn:  # a crash of the machine may leave a last line of zeros
                torn = len(line) + 1
                break
            why = str(error).split("\n")[0][:80]
            raise UnmaskError(
                f"line {number} of {str(path)!r} is not a record ({why}): "
                "mend or remove it, and its problem is done again"
            ) from None
        if record.name in records and records[record.name].error is None:
            raise UnmaskError(f"line {number} of {str(path)!r} repeats the record of an earlier line")
        records.pop(record.name, None)  # a failure may be tried again: the later line counts
        records[record.name] = record
    return list(records.values()), len(raw) - torn


@dataclass
class RunFolder:
    """A run's folder, open for writing."""

    path: Path
    head: dict[str, Any]
    records: list[Record] = field(repr=False)  # those it held when it was opened
    _file: int = field(repr=False)

    def append(self, records: Iterable[Record]) -> None:
        """They are on the disk when this returns; after an error the file is as it was."""
        before = os.fstat(self._file).st_size
        try:
            _write(self._file, b"".join(record.line() for record in records))
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, before)
                os.fsync(self._file)
            raise _refusal(self.path, error) from None

    def keep(self, path: Path, text: str) -> None:
        """A file beside the records."""
        try:
            write_whole(self.path / path, text)
        except OSError as error:
            raise _refusal(self.path, error) from None


@contextlib.contextmanager
def open_run(folder: str | os.PathLike[str], head: dict[str, Any]) -> Iterator[RunFolder]:
    """Begin the run that `head` describes, or resume it; another run's folder is refused."""
    folder = Path(folder)
    with contextlib.ExitStack() as stack:
        try:
            _make(folder)
            lock = stack.enter_context((folder / LOCK).open("a+b", buffering=0))
            _hold(lock.fileno(), folder)
            records, size = read_records(folder / RECORDS)
            head = _agree(folder, head, bool(records))
            file = stack.enter_context((folder / RECORDS).open("ab", buffering=0)).fileno()
            if os.fstat(file).st_size > size:
                os.ftruncate(file, size)
            os.fsync(file)
            _sync_folder(folder)
        except OSError as error:
            raise _refusal(folder, error) from None
        yield RunFolder(folder, head, records, file)


def _make(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UnmaskError(f"{str(folder)!r} is a file: a run needs a folder")
    folder.mkdir(parents=True, exist_ok=True)
    entries = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".")]
    if entries and HEAD not in entries:
        raise UnmaskError(f"{str(folder)!r} holds {sorted(entries)[0]!r} and no run: choose an empty folder")


def _hold(lock: int, folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 32, 0).decode(errors="replace").strip()
        who = f" (process {holder})" if holder else ""
        raise UnmaskError(f"another process{who} is writing {str(folder)!r}: wait for it or choose another") from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


def _agree(folder: Path, head: dict[str, Any], begun: bool) -> dict[str, Any]:
    """The head the run began with; this one where nothing is recorded yet."""
    stored = read_head(folder)
    if stored is None or not begun:
        write_whole(folder / HEAD, json.dumps(head, ensure_ascii=False, indent=1) + "\n")
        return head
    spec = json.loads(json.dumps(head["spec"]))  # tuples are lists on the disk
    if stored["spec"] != spec:
        raise UnmaskError(
            f"{str(folder)!r} holds another run ({difference(stored['spec'], spec)}): "
            "choose another folder, or ask for the same run"
        )
    return stored


def difference(stored: dict[str, Any], spec: dict[str, Any]) -> str:
    """In words: how a stored spec and a new one differ."""
    keys = [key for key in dict.fromkeys([*stored, *spec]) if stored.get(key) != spec.get(key)]
    return "; ".join(f"{key}: {_contrast(stored.get(key), spec.get(key))}" for key in keys)


def _contrast(stored: Any, value: Any) -> str:
    if isinstance(stored, list) and isinstance(value, list):
        removed, added = [x for x in stored if x not in value], [x for x in value if x not in stored]
        if removed or added:
            stored, value = removed or "nothing more", added or "nothing more"
    return f"{_short(stored)} there, {_short(value)} here"


def _short(value: Any) -> str:
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return str(value) if len(str(value)) <= 200 else str(value)[:199] + "…"


def read_json_lines(path: str | os.PathLike[str], form: str, version: int) -> list[Any]:
    """All lines of a file whose first line names this format and version."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UnmaskError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        text = ""
    lines = [_parse(line) for line in text.removesuffix("\n").split("\n")]
    if not isinstance(lines[0], dict) or lines[0].get("format") != form:
        raise UnmaskError(f"{str(path)!r} is not an {form} file: its first line does not name that format")
    if lines[0].get("version") != version:
        raise UnmaskError(f"{str(path)!r} has version {lines[0].get('version')}: this unmask reads {version}")
    if None in lines:
        raise UnmaskError(f"{str(path)!r} is torn at line {lines.index(None) + 1}: make it again")
    return lines


def _parse(line: str) -> Any:
    """None for a line that is not JSON."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def check_writable(path: Path) -> None:
    """Before the work, not after it."""
    if path.is_dir():
        raise UnmaskError(f"{str(path)!r} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise UnmaskError(f"there is no folder {str(path.parent)!r} to write {path.name!r} into: make it first")
    if not os.access(path.parent, os.W_OK):
        raise UnmaskError(f"nothing can be written into {str(path.parent)!r}: choose another folder")


def write_whole(path: Path, text: str) -> None:
    """The file appears whole or not at all, and is on the disk when this returns."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb", buffering=0) as file:
        _write(file.fileno(), text.encode())
    part.replace(path)
    _sync_folder(path.parent)


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:  # the system may write less than it was given
        rest = rest[os.write(file, rest) :]
    os.fsync(file)


def _sync_folder(folder: Path) -> None:
    """Names of new files are part of the folder and need a sync of their own."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


_REASONS = {
    errno.ENOSPC: "the disk is full: make room",
    errno.EDQUOT: "the disk quota is used up: make room",
    errno.EFBIG: "the file may not grow further: raise its limit",
    errno.EROFS: "the file system is read-only: choose another folder",
    errno.EACCES: "permission is missing: choose another folder",
    errno.EPERM: "permission is missing: choose another folder",
}


def _refusal(folder: Path, error: OSError) -> UnmaskError:
    why = _REASONS.get(error.errno or 0, error.strerror)
    return UnmaskError(f"the run in {str(folder)!r} cannot be written ({why}); every whole record there is kept")
