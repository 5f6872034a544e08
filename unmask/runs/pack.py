"""Runs packed in columns, without their texts: what figures are computed from, small enough to keep beside them.

A packed run is a few JSON objects: its head, its problems' ids by task, then one object per cell, seed and sample, with
a list for each field, or one value where all problems share it. Prompts, texts and likelihoods are left out, and long
answers are replaced by a hash, so that votes and grades stay the same.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError
from unmask.runs.files import write_whole
from unmask.runs.record import Counts, Measured, Record, check_format
from unmask.runs.store import Run

LONG = 48  # characters; a longer answer is replaced by its hash
_NAME = ("model", "task", "task_version", "decoder", "length", "seed", "sample")
_PLAIN = ("answer", "key", "right", "score", "error")
_COST = ("forward_passes", "computed", "positions")
_MEASURED = ("calls", "seconds", "memory", "batch")


def pack(run: Run) -> Iterator[dict[str, Any]]:
    yield {"head": run.head}
    ids: dict[str, list[str]] = {}
    for record in run.records:
        ids.setdefault(record.task, []).append(record.problem)
    ids = {task: list(dict.fromkeys(problems)) for task, problems in ids.items()}
    yield {"problems": ids}
    for name, group in groupby(run.records, key=lambda record: [getattr(record, field) for field in _NAME]):
        yield _packed(name, list(group), ids)


def _packed(name: list[Any], records: list[Record], ids: dict[str, list[str]]) -> dict[str, Any]:
    problems = [record.problem for record in records]
    known = ids[records[0].task]
    place = {problem: number for number, problem in enumerate(known)}
    columns = {field: [_short(getattr(record, field)) for record in records] for field in _PLAIN}
    same = zip(columns["key"], columns["answer"], strict=True)
    columns["key"] = [None if key == answer else key for key, answer in same]
    columns |= {field: [getattr(record.cost, field) for record in records] for field in _COST}
    columns |= {field: [getattr(record.measured, field) for record in records] for field in _MEASURED}
    which = None if problems == known else [place[problem] for problem in problems]
    return {"cell": name, "problems": which, **{field: _alike(values) for field, values in columns.items()}}


def unpack(packed: Iterable[dict[str, Any]], name: str) -> Run:
    lines = iter(packed)
    head = next(lines)["head"]
    check_format(head.get("format"), repr(name))
    ids = next(lines)["problems"]
    records = [record for line in lines for record in _unpacked(line, ids)]
    return Run(Path(name), head, records)


def _unpacked(line: dict[str, Any], ids: dict[str, list[str]]) -> Iterator[Record]:
    name = dict(zip(_NAME, line["cell"], strict=True))
    known = ids[name["task"]]
    problems = known if line["problems"] is None else [known[number] for number in line["problems"]]
    columns = {field: _spread(line[field], len(problems)) for field in (*_PLAIN, *_COST, *_MEASURED)}
    for number, problem in enumerate(problems):
        at = {field: values[number] for field, values in columns.items()}
        plain = {field: at[field] for field in _PLAIN} | {"key": at["answer"] if at["key"] is None else at["key"]}
        yield Record(
            **name,
            problem=problem,
            prompt="",
            text="",
            likelihood=None,
            cost=Counts(**{field: at[field] for field in _COST}),
            measured=Measured(**{field: at[field] for field in _MEASURED}),
            **plain,
        )


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """The same bytes for the same lines."""
    text = "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, gzip.compress(text.encode("utf-8", "replace"), 9, mtime=0))


def read_lines(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    except (OSError, EOFError, ValueError) as error:
        raise UnmaskError(f"{str(path)!r} does not hold packed records: {error}") from None


def _short(value: Any) -> Any:
    if not isinstance(value, str) or len(value) <= LONG:
        return value
    return "#" + blake2b(value.encode("utf-8", "replace"), digest_size=6).hexdigest()


def _alike(values: Sequence[Any]) -> Any:
    return {"all": values[0]} if all(value == values[0] for value in values) else values


def _spread(column: Any, count: int) -> list[Any]:
    return [column["all"]] * count if isinstance(column, dict) else column
