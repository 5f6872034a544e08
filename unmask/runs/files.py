"""Files that appear whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError


def write_whole(path: Path, content: str | bytes) -> None:
    """The file appears whole or not at all, and is on the disk when this returns.

    What is not a plain file (a pipe, `/dev/stdout`) is written to as it is; a link is followed.
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


def write_all(file: int, data: bytes) -> None:
    """On the disk when this returns."""
    rest = memoryview(data)
    while rest:  # the system may write less than it was given
        rest = rest[os.write(file, rest) :]
    os.fsync(file)


def sync_folder(folder: Path) -> None:
    """Makes the names of new files last."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def read_json_lines(path: str | os.PathLike[str], form: str, version: int) -> list[Any]:
    """All lines of a file whose first line names this format and version."""
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
        raise UnmaskError(f"{str(path)!r} has version {lines[0].get('version')}: this unmask reads {version}")
    if None in lines:
        raise UnmaskError(f"{str(path)!r} is cut off or damaged at line {lines.index(None) + 1}: make it again")
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
    if path.parent.is_file():
        raise UnmaskError(f"{str(path.parent)!r} is a file: {path.name!r} cannot be written into it")
    if not path.parent.is_dir():
        raise UnmaskError(f"there is no folder {str(path.parent)!r} to write {path.name!r} into: make it first")
    if not os.access(path.parent, os.W_OK):
        raise UnmaskError(f"nothing can be written into {str(path.parent)!r}: choose another folder")
