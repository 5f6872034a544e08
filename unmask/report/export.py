"""Records of runs for other tools: a flat table with a row per record, as CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from typing import Any

from unmask.errors import UnmaskError, nearest
from unmask.report.gather import gather
from unmask.runs.record import Counts, Measured, Record
from unmask.runs.store import Run

PARTS = ("cost", "measured")  # of a record, whose fields become columns
COLUMNS = {"run": "str"} | {
    field.name: str(field.type)
    for kind in (Record, Counts, Measured)
    for field in fields(kind)
    if field.name not in PARTS
}


def record_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Every record as one flat dict, with the folder of its run."""
    rows = []
    for run in runs:
        for record in run.records:
            values = asdict(record)
            parts = [values.pop(part) for part in PARTS]
            rows.append({"run": str(run.folder)} | values | parts[0] | parts[1])
    return rows


def export(runs: Sequence[Run], form: str) -> bytes:
    """The file's content, in one of `FORMATS`."""
    if form not in FORMATS:
        raise UnmaskError(f"runs cannot be exported as {form!r}: {nearest(form, FORMATS)}")
    gather(runs)  # refuses folders that contradict one another
    return FORMATS[form](record_rows(runs))


def _csv(rows: Sequence[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "replace")


def _json_lines(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8", "replace")


def _parquet(rows: Sequence[dict[str, Any]]) -> bytes:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UnmaskError("Parquet needs pyarrow: pip install 'unmask[data]'") from None
    kinds = {"str": pyarrow.string(), "int": pyarrow.int64(), "float": pyarrow.float64(), "bool": pyarrow.bool_()}
    schema = pyarrow.schema([(name, kinds[kind.removesuffix(" | None")]) for name, kind in COLUMNS.items()])
    clean = [{name: _whole(value) for name, value in row.items()} for row in rows]
    out = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(clean, schema), out)
    return out.getvalue()


def _whole(value: Any) -> Any:
    """Half a surrogate pair has no UTF-8."""
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value


FORMATS: dict[str, Callable[[Sequence[dict[str, Any]]], bytes]] = {
    "csv": _csv,
    "jsonl": _json_lines,
    "parquet": _parquet,
}
