"""A run's folder: `run.json` describes the run, `records.jsonl` grows by whole lines. A killed run can be resumed.

One process at a time writes a folder, which it locks. A line counts once its newline is on the disk; what follows the
last newline was cut off by a crash: it is dropped, and its problem is decoded again.

A finished run can be packed in columns, without its texts: what figures are computed from, small enough to keep beside
them. A packed run is a few JSON objects: its header, its problems' ids by task, then one object per cell, seed and
sample, with a list for each field, or one value that all problems share. Prompts, texts and likelihoods are left out,
and long answers are replaced by a hash, so that votes and grades stay the same.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
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
        except (ValueError, RecursionError) as error:
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
_NAME = ("model", "task", "task_version", "decoder", "length", "seed", "sample")
_MEASURED = ("calls", "seconds", "memory", "batch")
_COLUMNS = ("answer", "key", "right", "score", "verdict", "error", *COUNTS, *_MEASURED)
_UNCHECKED = {"verdict": {"all": None}, "checks": {"all": 0}}  # columns that a run without a check does not have


def pack(run: Run) -> Iterator[dict[str, Any]]:
    """Yield the objects of a packed run."""
    yield {"head": run.head}
    ids: dict[str, list[str]] = {}
    for record in run.records:
        ids.setdefault(record.task, []).append(record.problem)
    ids = {task: list(dict.fromkeys(problems)) for task, problems in ids.items()}
    yield {"problems": ids}
    for cell, group in groupby(run.records, key=lambda record: [getattr(record, name) for name in _NAME]):
        yield _packed(cell, list(group), ids)


def _packed(cell: list[Any], records: list[Record], ids: dict[str, list[str]]) -> dict[str, Any]:
    """Return the columns of the records of one cell, seed and sample."""
    problems, known = [record.problem for record in records], ids[records[0].task]
    place = {problem: number for number, problem in enumerate(known)}
    which = None if problems == known else [place[problem] for problem in problems]
    rows = [{**vars(record), **vars(record.cost), **vars(record.measured)} for record in records]
    columns = {name: [_short(row[name]) for row in rows] for name in _COLUMNS}
    same = zip(columns["key"], columns["answer"], strict=True)
    columns["key"] = [None if key == answer else key for key, answer in same]
    packed = {name: _alike(values) for name, values in columns.items()}
    checked = {name: column for name, column in packed.items() if column != _UNCHECKED.get(name)}
    return {"cell": cell, "problems": which, **checked}


def unpack(packed: Iterable[dict[str, Any]], name: str) -> Run:
    """Return the run that was packed, without its texts."""
    lines = iter(packed)
    head = next(lines)["head"]
    check_format(head.get("format"), repr(name))
    ids = next(lines)["problems"]
    records = [record for line in lines for record in _unpacked(line, ids)]
    return Run(Path(name), head, records)


def _unpacked(line: dict[str, Any], ids: dict[str, list[str]]) -> Iterator[Record]:
    """Yield the records of one cell, seed and sample."""
    cell = dict(zip(_NAME, line["cell"], strict=True))
    known = ids[cell["task"]]
    problems = known if line["problems"] is None else [known[number] for number in line["problems"]]
    columns = [_spread((_UNCHECKED | line)[name], len(problems)) for name in _COLUMNS]
    for problem, *row in zip(problems, *columns, strict=True):
        values = dict(zip(_COLUMNS, row, strict=True))
        if values["key"] is None:
            values["key"] = values["answer"]
        cost = Counts(**{name: values.pop(name) for name in COUNTS})
        measured = Measured(**{name: values.pop(name) for name in _MEASURED})
        yield Record(**cell, problem=problem, prompt="", cost=cost, measured=measured, **values)


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


def _alike(values: Sequence[Any]) -> Any:
    return {"all": values[0]} if all(value == values[0] for value in values) else values


def _spread(column: Any, count: int) -> list[Any]:
    return [column["all"]] * count if isinstance(column, dict) else column
