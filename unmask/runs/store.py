"""A run's folder: `run.json` describes the run, `records.jsonl` grows by whole lines. A killed run can be resumed.

One process at a time writes a folder, which it locks. A line counts once its newline is on the disk; what follows the
last newline was cut off by a crash: it is dropped, and its problem is decoded again.

A finished run can be packed without its texts: what figures are computed from, small enough to keep beside them.
Prompts, texts and likelihoods are left out, and long answers are replaced by a hash, so that votes and grades stay the
same.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

from unmask.errors import UnmaskError
from unmask.runs.files import locked, make_folder, refusing, sync_folder, write_all, write_whole
from unmask.runs.header import HEAD, Digest, note_checkpoint, read_head, resume_header
from unmask.runs.record import COUNTS, Counts, Measured, Name, Record, check_format, read_record

RECORDS = "records.jsonl"
Problems: TypeAlias = Mapping[str, Collection[str]]  # the ids of each task


@dataclass(frozen=True)
class Run:
    """A run as it was read from its folder."""

    folder: Path
    head: dict[str, Any]  # the content of run.json
    records: list[Record]  # sorted by name, whatever order they were written in

    @property
    def spec(self) -> dict[str, Any]:
        """The settings of the run."""
        return self.head["spec"]

    @property
    def check(self) -> str:
        """The checks of the run; empty if it had none."""
        return ", ".join(self.spec.get("check", ()))


def read_run(folder: str | os.PathLike[str]) -> Run:
    """Read a finished run, or one that is still growing."""
    folder = Path(folder)
    head = read_head(folder)
    if head is None:
        raise UnmaskError(f"{str(folder)!r} is not a run: it has no {HEAD}")
    records, _ = read_records(folder / RECORDS, head["spec"], {})
    return Run(folder, head, sorted(records, key=lambda record: record.name))


def read_records(path: Path, spec: dict[str, Any], problems: Problems) -> tuple[list[Record], int]:
    """Return the records and the number of bytes they fill; the rest is an incomplete line.

    Each record must be whole and belong to the run that `spec` describes, and its problem to its task's, if known.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise UnmaskError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    lines = raw.split(b"\n")
    torn = len(lines.pop())
    known = _known(spec, problems)
    records: dict[Name, Record] = {}
    for number, line in enumerate(lines, 1):
        try:
            record = read_record(line)
            _check_name(record, known)
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            if number == len(lines) and not torn and bytes(16) in line:  # a crash of the machine may leave zeros
                torn = len(line) + 1
                break
            why = str(error).split("\n")[0][:80]
            remedy = "fix or delete the line; its problem will be decoded again"
            raise UnmaskError(f"line {number} of {str(path)!r} is not a record ({why}): {remedy}") from None
        if record.name in records and records[record.name].error is None:
            raise UnmaskError(f"line {number} of {str(path)!r} repeats the record of an earlier line")
        records.pop(record.name, None)  # a failure may be tried again: the later line counts
        records[record.name] = record
    return list(records.values()), len(raw) - torn


def _known(spec: dict[str, Any], problems: Problems) -> dict[str, Any]:
    """Return the values that each part of a record's name may have; a part that is not listed may have any."""
    lists = {"model": "models", "task": "tasks", "decoder": "decoders", "length": "lengths", "seed": "seeds"}
    known: dict[str, Any] = {part: set(spec[key]) for part, key in lists.items() if key in spec}
    if "samples" in spec:
        known["sample"] = range(spec["samples"])
    return known | {"problem": problems}


def _check_name(record: Record, known: dict[str, Any]) -> None:
    """Raise ValueError for a record of a different run."""
    for part, value in record.name._asdict().items():
        values = known["problem"].get(record.task) if part == "problem" else known.get(part)
        if values is not None and value not in values:
            raise ValueError(f"{part} {value!r} is not part of this run")


@dataclass
class RunFolder:
    """A run's folder, open for writing."""

    path: Path
    head: dict[str, Any]
    records: list[Record] = field(repr=False)  # the records that it held when it was opened
    _file: int = field(repr=False)

    def append(self, records: Iterable[Record]) -> None:
        """Write records. They are on the disk when this returns; after an error the file is as it was."""
        before = os.fstat(self._file).st_size
        with refusing(self.path):
            try:
                write_all(self._file, b"".join(record.line() for record in records))
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, before)
                    os.fsync(self._file)
                raise

    def check_checkpoint(self, model: str, checkpoint: dict[str, Any] | None) -> None:
        """Refuse answers of a different checkpoint than the run's."""
        with refusing(self.path):
            note_checkpoint(self.path, self.head, model, checkpoint)

    def write(self, path: str, text: str) -> None:
        """Write a file beside the records."""
        with refusing(self.path):
            write_whole(self.path / path, text)


@contextlib.contextmanager
def open_run(
    folder: str | os.PathLike[str], head: dict[str, Any], problems: Problems, digest: Digest
) -> Iterator[RunFolder]:
    """Begin the run that `head` describes, resume it, or let it grow; the folder of a different run is refused.

    `digest` is used to check that the problems of a smaller run are the first of this one's.
    """
    folder = Path(folder)
    with contextlib.ExitStack() as stack:
        with refusing(folder):
            make_folder(folder, (HEAD,), "run")
            stack.enter_context(locked(folder))
            head = resume_header(folder, head, _begun(folder / RECORDS), digest)
            records, size = read_records(folder / RECORDS, head["spec"], problems)
            file = stack.enter_context((folder / RECORDS).open("ab", buffering=0)).fileno()
            if os.fstat(file).st_size > size:
                os.ftruncate(file, size)
            os.fsync(file)
            sync_folder(folder)
        yield RunFolder(folder, head, records, file)


def _begun(path: Path) -> bool:
    """True if the file holds a whole line."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        return file.readline().endswith(b"\n")


LONG = 48  # characters above which an answer is replaced by its hash
_MEASURED = ("calls", "seconds", "memory", "batch")
_NAMES = ("model", "task", "task_version", "decoder", "length", "seed", "sample", "problem")
_COLUMNS = ("answer", "key", "right", "score", "verdict", "error", *COUNTS, *_MEASURED)


def pack(run: Run) -> dict[str, Any]:
    """Return a run as plain values: its header, and a list for each field of its records."""
    rows = [{**vars(record), **vars(record.cost), **vars(record.measured)} for record in run.records]
    names = {name: [row[name] for row in rows] for name in _NAMES}
    return {"head": run.head, "records": names | {name: [_short(row[name]) for row in rows] for name in _COLUMNS}}


def unpack(packed: dict[str, Any], name: str) -> Run:
    """Return the run that was packed, without its texts."""
    check_format(packed["head"].get("format"), repr(name))
    records = []
    for row in zip(*packed["records"].values(), strict=True):
        values = dict(zip(packed["records"], row, strict=True))
        cost = Counts(**{field: values.pop(field) for field in COUNTS})
        measured = Measured(**{field: values.pop(field) for field in _MEASURED})
        records.append(Record(prompt="", cost=cost, measured=measured, **values))
    return Run(Path(name), packed["head"], records)


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write objects as compressed JSON lines, the same bytes for the same lines."""
    text = "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, gzip.compress(text.encode("utf-8", "replace"), 9, mtime=0))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read what `write_lines` wrote."""
    try:
        return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    except (OSError, EOFError, ValueError) as error:
        raise UnmaskError(f"{str(path)!r} does not hold packed records: {error}") from None


def _short(value: Any) -> Any:
    """Return a value, or the hash of a long text."""
    if not isinstance(value, str) or len(value) <= LONG:
        return value
    return "#" + blake2b(value.encode("utf-8", "replace"), digest_size=6).hexdigest()
