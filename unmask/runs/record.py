"""The result of one problem in one cell of a run: a line of `records.jsonl`.

    {"model": "tiny", "task": "countdown(level=4, …)", "task_version": 1, "decoder": "low-confidence(block=32, …)",
     "length": 64, "seed": 0, "sample": 0, "problem": "countdown-00f1…", "prompt": …, "text": …, "answer": "87-28+35",
     "key": "87-28+35", "right": true, "score": 1.0, "likelihood": -0.41, "cost": {"forward_passes": 32, …},
     "error": null, "measured": {"calls": 32, "seconds": 0.2, …}, "checksum": "9f…"}

Everything outside `measured` is the same bytes whatever the batch, engine or worker, on an x86 CPU in float32 with the
arithmetic that `run.json` names.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from hashlib import blake2b
from typing import Any, NamedTuple

from unmask.errors import UnmaskError

FORMAT = 1  # version of run.json and records.jsonl together


class Cell(NamedTuple):
    """One cell of a grid."""

    model: str
    task: str
    decoder: str
    length: int


class Name(NamedTuple):
    """The fields that identify a record; records sort by them."""

    model: str
    task: str
    decoder: str
    length: int
    seed: int
    sample: int
    problem: str


@dataclass(frozen=True)
class Counts:
    """The cost of an answer in units that do not depend on the machine."""

    forward_passes: int = 0  # forward passes that the decoder asked for: the paper's NFE divided by L
    computed: int = 0  # forward passes that were computed: identical rows of one problem are computed once
    positions: int = 0  # positions of the computed rows, without padding
    checks: int = 0  # texts that were checked


COUNTS = tuple(each.name for each in fields(Counts))


@dataclass(frozen=True)
class Measured:
    """Measurements that differ from run to run."""

    calls: int = 0  # calls of the network, shared by the batch
    seconds: float = 0.0  # this problem's share of its batch's decoding
    memory: int = 0  # most bytes in use on the device while its batch ran; 0 where that is not known
    time: str = ""  # when it was decoded, by the wall clock, in UTC
    worker: str = ""  # the process that decoded it, as host:pid
    batch: int = 0  # problems decoded together
    check_seconds: float = 0.0  # seconds that its checks took, in processes that run at the same time


@dataclass(frozen=True)
class Record:
    """The result of one problem; one that is not graded yet has no answer, key, right and score."""

    model: str  # the model's spec, folder or hub id
    task: str  # the task's spec, every setting written out
    task_version: int  # changes when a grade or a prompt could
    decoder: str  # the decoder's spec, every default written out for this length
    length: int  # masks after the prompt
    seed: int
    sample: int  # 0 … n−1; sample i is what a run under reseed(seed, i) gives
    problem: str  # the problem's id
    prompt: str  # the prompt as the model read it, in its template; empty if the model never read it
    text: str = ""  # the answer: the chosen hypothesis, cut at end-of-text
    answer: str | None = None  # the answer read from the text; null if there is none
    key: str | None = None  # texts with the same key vote together; null if there is no text
    right: bool | None = None  # null if nothing was graded
    score: float | None = None  # 1 or 0, or a share where the task counts parts
    likelihood: float | None = None  # the decoder's score of the chosen hypothesis; null if it is not finite
    cost: Counts = field(default_factory=Counts)
    error: str | None = None  # a sentence if the problem could not be decoded or graded
    measured: Measured = field(default_factory=Measured)
    verdict: float | None = None  # what the check said of the text, from 0 to 1; null without a check

    @property
    def cell(self) -> Cell:
        return Cell(*self.name[:4])

    @property
    def name(self) -> Name:
        return Name(self.model, self.task, self.decoder, self.length, self.seed, self.sample, self.problem)

    def line(self) -> bytes:
        """Return the record as a line of the file."""
        values = asdict(self)
        values["checksum"] = checksum(values)
        try:
            return json.dumps(values, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        except UnicodeEncodeError:  # half a surrogate pair has no UTF-8; its escape can be read back
            return json.dumps(values, allow_nan=False).encode() + b"\n"

    def lasting(self) -> dict[str, Any]:
        """Return everything but the measurements: what two runs of one spec have in common."""
        values = asdict(self)
        del values["measured"]
        return values


def read_record(line: bytes | str) -> Record:
    """Read a line of the file; raise ValueError if it is not a whole record, as it was written."""
    values = json.loads(line)
    if not isinstance(values, dict) or values.pop("checksum", None) != checksum(values):
        raise ValueError("checksum mismatch")
    return Record(**values | {"cost": Counts(**values["cost"]), "measured": Measured(**values["measured"])})


def checksum(values: dict[str, Any]) -> str:
    """Return a hash of plain values that does not depend on the order of their keys."""
    return blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=8).hexdigest()


def trace_file(name: Name) -> str:
    """Return the path of a record's trace inside the run's folder."""
    return f"traces/{blake2b(json.dumps(name).encode(), digest_size=8).hexdigest()}.jsonl"


def check_format(number: Any, where: str) -> None:
    """Refuse a run that was written in a different format."""
    if number != FORMAT:
        raise UnmaskError(f"{where} must be a run of format {FORMAT}, got format {number!r}")
