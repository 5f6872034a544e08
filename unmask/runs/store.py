"""A run's folder: `run.json` describes the run, `records.jsonl` grows by whole lines. A killed run can be resumed.

One process writes at a time, held to it by a lock. A line counts once its newline is on the disk; what follows the last
newline was cut off by a crash: it is dropped, and its problem is done again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from unmask.errors import UnmaskError
from unmask.runs.files import locked, make_folder, refusal, sync_folder, write_all, write_whole
from unmask.runs.header import HEAD, Digest, agree, learn, read_head
from unmask.runs.record import Name, Record, read_record

RECORDS = "records.jsonl"
Problems: TypeAlias = Mapping[str, Collection[str]]  # the ids of each task


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
    records, _ = read_records(folder / RECORDS, head["spec"])
    return Run(folder, head, sorted(records, key=lambda record: record.name))


def read_records(
    path: Path, spec: dict[str, Any] | None = None, problems: Problems | None = None
) -> tuple[list[Record], int]:
    """The records, and the number of bytes they fill: the rest is an incomplete line.

    Each must be whole, and belong to the run that `spec` describes; its problem to those of its task, where known.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise UnmaskError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    lines = raw.split(b"\n")
    torn = len(lines.pop())
    known = _known(spec or {}, problems or {})
    records: dict[Name, Record] = {}
    for number, line in enumerate(lines, 1):
        try:
            record = read_record(line)
            _check_name(record, known)
        except (ValueError, RecursionError) as error:
            if number == len(lines) and not torn and bytes(16) in line:  # a crash of the machine may leave zeros
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


def _known(spec: dict[str, Any], problems: Problems) -> dict[str, Any]:
    """The values that each part of a record's name may have; a part that is not listed may have any."""
    lists = {"model": "models", "task": "tasks", "decoder": "decoders", "length": "lengths", "seed": "seeds"}
    known: dict[str, Any] = {part: set(spec[key]) for part, key in lists.items() if key in spec}
    if "samples" in spec:
        known["sample"] = range(spec["samples"])
    return known | {"problem": problems}


def _check_name(record: Record, known: dict[str, Any]) -> None:
    for part, value in record.name._asdict().items():
        values = known["problem"].get(record.task) if part == "problem" else known.get(part)
        if values is not None and value not in values:
            raise ValueError(f"{part} {value!r} is not part of this run")


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
            write_all(self._file, b"".join(record.line() for record in records))
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, before)
                os.fsync(self._file)
            raise refusal(self.path, error) from None

    def check(self, model: str, checkpoint: dict[str, Any] | None) -> None:
        """Refuse the answers of another checkpoint than the run's."""
        try:
            learn(self.path, self.head, model, checkpoint)
        except OSError as error:
            raise refusal(self.path, error) from None

    def keep(self, path: Path, text: str) -> None:
        """A file beside the records."""
        try:
            write_whole(self.path / path, text)
        except OSError as error:
            raise refusal(self.path, error) from None


@contextlib.contextmanager
def open_run(
    folder: str | os.PathLike[str],
    head: dict[str, Any],
    problems: Problems | None = None,
    digest: Digest | None = None,
) -> Iterator[RunFolder]:
    """Begin the run that `head` describes, resume it, or let it grow; another run's folder is refused.

    `digest` tells whether the problems of a smaller run are the first of this one's.
    """
    folder = Path(folder)
    with contextlib.ExitStack() as stack:
        try:
            make_folder(folder, (HEAD,), "run")
            stack.enter_context(locked(folder))
            head = agree(folder, head, _begun(folder / RECORDS), digest)
            records, size = read_records(folder / RECORDS, head["spec"], problems)
            file = stack.enter_context((folder / RECORDS).open("ab", buffering=0)).fileno()
            if os.fstat(file).st_size > size:
                os.ftruncate(file, size)
            os.fsync(file)
            sync_folder(folder)
        except OSError as error:
            raise refusal(folder, error) from None
        yield RunFolder(folder, head, records, file)


def _begun(path: Path) -> bool:
    """Whether there is a whole line."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        return file.readline().endswith(b"\n")
