"""Join packed records of one experiment that were run in pieces: `python -m tools.join_results OUT PACK…`.

Where two files hold the same cell, the later one's records count. The joined file says that everything was asked for.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unmask.experiments import EXPERIMENTS
from unmask.experiments.archive import packed, read_packed
from unmask.experiments.evidence import Evidence
from unmask.experiments.methods import Part
from unmask.report.labels import meaning
from unmask.runs.compact import write_lines
from unmask.runs.record import Record
from unmask.runs.store import Run


def joined(pieces: Sequence[Evidence], measured: Any = None) -> Evidence:
    setup = replace(pieces[0].setup, methods=())
    parts = EXPERIMENTS[pieces[0].experiment].parts(setup)
    runs = {part.name: [piece.runs[part.name] for piece in pieces if part.name in piece.runs] for part in parts}
    together = {part.name: _joined(part, runs[part.name]) for part in parts if runs[part.name]}
    return replace(pieces[0], setup=setup, parts=parts, runs=together, measured=measured or pieces[0].measured)


def _joined(part: Part, runs: Sequence[Run]) -> Run:
    decoders = [meaning(method.spec, length) or method.spec for method in part.methods for length in part.lengths]
    version = runs[-1].spec["task_versions"]
    cells: dict[tuple[Any, ...], list[Record]] = {}
    for run in runs:
        if run.spec["task_versions"] == version:
            cells |= _cells(run.records)
    order = sorted(cells, key=lambda cell: (decoders.index(cell[0]), *cell[1:]))
    spec = runs[-1].spec | {"decoders": list(dict.fromkeys(decoders))}
    head = runs[-1].head | {"spec": spec}
    return replace(runs[-1], head=head, records=[record for cell in order for record in cells[cell]])


def _cells(records: Iterable[Record]) -> dict[tuple[Any, ...], list[Record]]:
    cells: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        cells.setdefault((record.decoder, record.length, record.seed, record.sample), []).append(record)
    return cells


def main(out: Path, *files: Path) -> None:
    """Files that end in `.json` hold what was measured."""
    measured = [json.loads(file.read_text("utf-8")) for file in files if file.suffix == ".json"]
    pieces = [read_packed(file) for file in files if file.suffix != ".json"]
    write_lines(out, packed(joined(pieces, *measured)))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
