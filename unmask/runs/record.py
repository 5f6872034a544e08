"""The result of one problem in one cell of a run: a line of `records.jsonl`.

    {"model": "tiny", "task": "countdown(level=4, …)", "task_version": 1, "decoder": "low-confidence(block=32, …)",
     "length": 64, "seed": 0, "sample": 0, "problem": "countdown-00f1…", "prompt": …, "text": …, "answer": "87-28+35",
     "key": "87-28+35", "right": true, "score": 1.0, "likelihood": -0.41, "cost": {"forward_passes": 32, …}, "error": null,
     "measured": {"calls": 32, "seconds": 0.2, …}, "checksum": "9f…"}

Everything outside `measured` is the same bytes whatever the batch, engine or worker, on an x86 CPU in float32 with the
arithmetic that `run.json` names.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from typing import Any, NamedTuple

from unmask.errors import UnmaskError

FORMAT = 1  # of run.json and records.jsonl together


class Cell(NamedTuple):
    """One cell of a grid."""

    model: str
    task: str
    decoder: str
    length: int


class Name(NamedTuple):
    """What identifies a record; records sort by it."""

    model: str
    task: str
    decoder: str
    length: int
    seed: int
    sample: int
    problem: str


@dataclass(frozen=True)
class Counts:
    """What the answer cost, in units that do not depend on the machine."""

    forward_passes: int = 0  # asked of the network: the paper's NFE divided by L
    computed: int = 0  # rows computed: identical rows of one problem are computed once
    positions: int = 0  # of the distinct rows, without padding


@dataclass(frozen=True)
class Measured:
    """What differs from run to run."""

    calls: int = 0  # of the network, shared by the batch
    seconds: float = 0.0  # this problem's share of its batch's decoding
    memory: int = 0  # most bytes in use on the device while its batch ran; 0 where that is not known
    time: str = ""  # when the record was made, by the wall clock, in UTC
    worker: str = ""  # the process that decoded it, as host:pid
    batch: int = 0  # problems decoded together


@dataclass(frozen=True)
class Record:
    model: str  # its spec, folder or hub id
    task: str  # its spec, every setting written out
    task_version: int  # changes when a grade or a prompt could
    decoder: str  # its spec, every default written out for this length
    length: int  # masks after the prompt
    seed: int
    sample: int  # 0 … n−1; sample i is what a run under reseed(seed, i) gives
    problem: str  # its id
    prompt: str  # as the model saw it, in its template; empty where the model never saw it
    text: str  # the answer: the chosen row, cut at end-of-text
    answer: str | None  # read from the text; null where there is none
    key: str | None  # texts with the same key vote together; null where there is no text
    right: bool | None  # null where nothing was graded
    score: float | None  # 1 or 0, or a share where the task counts parts
    likelihood: float | None  # the decoder's score of the chosen row; null where it is not finite
    cost: Counts
    error: str | None  # a sentence where the problem could not be decoded or graded
    measured: Measured

    @property
    def cell(self) -> Cell:
        return Cell(*self.name[:4])

    @property
    def name(self) -> Name:
        return Name(self.model, self.task, self.decoder, self.length, self.seed, self.sample, self.problem)

    def line(self) -> bytes:
        """As it is written to the file."""
        values = asdict(self)
        values["checksum"] = checksum(values)
        try:
            return json.dumps(values, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        except UnicodeEncodeError:  # half a surrogate pair has no UTF-8; its escape can be read back
            return json.dumps(values, allow_nan=False).encode() + b"\n"

    def lasting(self) -> dict[str, Any]:
        """All but the measurements: what two runs of one spec have in common."""
        values = asdict(self)
        del values["measured"]
        return values


def read_record(line: bytes | str) -> Record:
    """Raises ValueError where the line is not a whole record, as it was written; old records have no checksum."""
    values = json.loads(line, parse_constant=_refuse_constant)
    if not isinstance(values, dict):
        raise ValueError("not a record")
    signed = values.pop("checksum", None)
    for part, kind in ((values, Record), (values.get("cost"), Counts), (values.get("measured"), Measured)):
        _check(part, kind)
    if signed is not None and signed != checksum(values):
        raise ValueError("its checksum is another")
    return Record(**values | {"cost": Counts(**values["cost"]), "measured": Measured(**values["measured"])})


def checksum(values: dict[str, Any]) -> str:
    """Of plain values, whatever the order of their keys; a file may be laid out anew."""
    return blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=8).hexdigest()


_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str, type(None)),
    "int": (int,),
    "float": (float, int),
    "float | None": (float, int, type(None)),
    "bool | None": (bool, type(None)),
}
_COUNTED = [field.name for kind in (Counts, Measured) for field in fields(kind)]
_RANGES = {"score": (0, 1), "length": (1, math.inf)} | dict.fromkeys(["sample", *_COUNTED], (0, math.inf))


def _check(values: Any, kind: type) -> None:
    """Raise unless the values are a part of a record: every field, of its type and in its range."""
    names = {field.name: str(field.type) for field in fields(kind)}
    if not isinstance(values, dict) or values.keys() != names.keys():
        missing = sorted(names.keys() - values.keys()) if isinstance(values, dict) else []
        raise ValueError(f"no {missing[0]!r}" if missing else "not a record")
    for name, annotation in names.items():
        value, low_high = values[name], _RANGES.get(name)
        wrong = annotation in _KINDS and type(value) not in _KINDS[annotation]
        if wrong or (low_high and isinstance(value, int | float) and not low_high[0] <= value <= low_high[1]):
            raise ValueError(f"{name} is {value!r}"[:60])


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a number of a record")


def finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


def trace_file(name: Name) -> str:
    """The path of a record's trace inside the run's folder."""
    return f"traces/{blake2b(json.dumps(name).encode(), digest_size=8).hexdigest()}.jsonl"


def check_format(number: Any, where: str) -> None:
    if number != FORMAT:
        raise UnmaskError(f"{where} is a run of format {number!r}: this unmask reads format {FORMAT}")
