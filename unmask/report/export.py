"""Records of runs for other tools: a flat table with a row per record, as CSV, JSON lines or Parquet."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from typing import Any

from unmask.errors import UnmaskError, check_known
from unmask.report.formats import write_csv
from unmask.report.gather import gather
from unmask.runs.record import Counts, Measured, Record
from unmask.runs.store import Run

PARTS = ("cost", "measured")  # fields of a record whose own fields become columns
COLUMNS = {"run": "str"} | {
    field.name: str(field.type)
    for kind in (Record, Counts, Measured)
    for field in fields(kind)
    if field.name not in PARTS
}
Rows = Sequence[dict[str, Any]]


def record_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return every record as one flat dict, with the folder of its run; half surrogate pairs become `?`."""
    rows = []
    for run in runs:
        for record in run.records:
            values = asdict(record)
            cost, measured = (values.pop(part) for part in PARTS)
            row = {"run": str(run.folder)} | values | cost | measured
            rows.append({name: _encodable(value) for name, value in row.items()})
    return rows


def _encodable(value: Any) -> Any:
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value


def export(runs: Sequence[Run], form: str) -> bytes:
    """Return the content of the file, in one of `FORMATS`."""
    check_known(FORMATS, format=form)
    gather(runs)  # raises an error if two folders contradict each other
    return FORMATS[form](record_rows(runs))


def _csv(rows: Rows) -> bytes:
    return write_csv(rows, list(COLUMNS)).encode()


def _json_lines(rows: Rows) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _parquet(rows: Rows) -> bytes:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UnmaskError("Parquet needs pyarrow: pip install 'unmask[data]'") from None
    kinds = {"str": pyarrow.string(), "int": pyarrow.int64(), "float": pyarrow.float64(), "bool": pyarrow.bool_()}
    schema = pyarrow.schema([(name, kinds[kind.removesuffix(" | None")]) for name, kind in COLUMNS.items()])
    out = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema), out)
    return out.getvalue()


FORMATS: dict[str, Callable[[Rows], bytes]] = {"csv": _csv, "jsonl": _json_lines, "parquet": _parquet}
