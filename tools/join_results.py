"""Join packed records of one experiment that were run in pieces: `python -m tools.join_results OUT PACK…`.

The first file names the experiment. A cell may come from any file that ran its decoder on its problems with the same
arithmetic, even for a different experiment. If two files hold the same cell, the records of the later file count.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice, product
from operator import attrgetter
from pathlib import Path
from typing import Any

from unmask.experiments import EXPERIMENTS
from unmask.experiments.results import Results, packed, read_packed
from unmask.experiments.setup import Part
from unmask.report.gather import grouped
from unmask.runs.grid import meaning
from unmask.runs.record import Record
from unmask.runs.store import Run, write_lines
from unmask.tasks import task

Cell = tuple[str, int, int, int]  # decoder, length, seed, sample
CONDITIONS = ("task_versions", "metric", "prompts", "device", "dtype", "precision")  # settings of runs that must agree


def joined(pieces: Sequence[Results], measured: Any = None) -> Results:
    benchmarks = dict.fromkeys(benchmark for piece in pieces for benchmark in piece.setup.benchmarks)
    setup = replace(pieces[0].setup, methods=(), benchmarks=tuple(benchmarks))
    parts = EXPERIMENTS[pieces[0].experiment].parts(setup)
    runs = {part.name: run for part in parts if (run := _run(part, pieces))}
    return replace(pieces[0], setup=setup, parts=parts, runs=runs, measured=measured or pieces[0].measured)


def _run(part: Part, pieces: Sequence[Results]) -> Run | None:
    """Return the run of a part with the records of all pieces; None if no piece ran it."""
    runs = [
        run for piece in pieces for each in piece.parts if _alike(each, part) and (run := piece.runs.get(each.name))
    ]
    fitting = [run for run in runs if run.spec["limit"] == part.limit]
    if not fitting:
        return None
    head, conditions = fitting[-1].head, _conditions(fitting[-1])
    named = (meaning(method.spec, length) or method.spec for method in part.methods for length in part.lengths)
    decoders, cells = list(dict.fromkeys(named)), {}
    for run in runs:
        if _conditions(run) == conditions:
            cells |= _cells(run.records)
    problems = {problem.id for problem in islice(task.make(part.task).problems(), part.limit)}
    wanted = [cell for cell in product(decoders, part.lengths, part.seeds, range(part.samples)) if cell in cells]
    records = [record for cell in wanted for record in cells[cell] if record.problem in problems]
    asked = {"lengths": list(part.lengths), "seeds": list(part.seeds), "samples": part.samples}
    spec = head["spec"] | {"decoders": decoders} | asked
    planned = Counter(cell[:2] for cell in wanted)
    (model,), (name,) = spec["models"], spec["tasks"]
    counts = [[model, name, chosen, length, count * len(problems)] for (chosen, length), count in planned.items()]
    return replace(fitting[-1], head=head | {"spec": spec, "cells": counts}, records=records) if records else None


def _conditions(run: Run) -> list[Any]:
    return [run.spec[name] for name in CONDITIONS]


def _alike(one: Part, other: Part) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in ("task", "cache", "early_end", "check"))


def _cells(records: Iterable[Record]) -> dict[Cell, list[Record]]:
    return grouped(records, attrgetter("decoder", "length", "seed", "sample"))


def main(out: Path, *files: Path) -> None:
    """Join packed files; a file that ends in `.json` holds measurements."""
    measured = [json.loads(file.read_text("utf-8")) for file in files if file.suffix == ".json"]
    pieces = [read_packed(file) for file in files if file.suffix != ".json"]
    write_lines(out, packed(joined(pieces, *measured)))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
