"""Where a report comes from: each run's folder, version, date, machine and command, and what it still lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unmask.report.tables import Table
from unmask.runs.grid import decoder_label, task_label
from unmask.runs.record import Cell, Name, trace_file
from unmask.runs.store import Run


@dataclass(frozen=True)
class Source:
    """One run."""

    folder: str
    unmask: str  # the version that began it
    created: str
    machine: str
    commands: tuple[str, ...]  # the first one, and those that made the run grow
    dates: tuple[str, ...]  # of the commands
    last_command: str  # the command that completes the run; empty where it was Python
    records: int
    planned: int | None  # records of the finished run; None where its folder does not say
    missing: tuple[tuple[Cell, int, int], ...]  # cells that lack records: how many they have, of how many

    @property
    def progress(self) -> str:
        return f"incomplete: {self.records} of {self.planned} records" if self.missing else f"{self.records} records"

    def json(self) -> dict[str, Any]:
        missing = [{**cell._asdict(), "records": have, "planned": of} for cell, have, of in self.missing]
        return {**asdict(self), "complete": self.planned and not self.missing, "missing": missing}


def source_of(run: Run) -> Source:
    head, machine = run.head, run.head.get("machine", {})
    planned = planned_records(run)
    have = Counter(record.cell for record in run.records)
    missing = [(cell, have[cell], count) for cell, count in (planned or {}).items() if have[cell] < count]
    parts = [machine.get("gpu"), machine.get("platform"), machine.get("torch") and f"torch {machine['torch']}"]
    steps = [(str(each.get("created", "")), str(each.get("command") or "")) for each in (head, *head.get("grown", ()))]
    typed = [(date, command) for date, command in steps if command]
    return Source(
        str(run.folder),
        str(head.get("unmask", "")),
        str(head.get("created", "")),
        ", ".join(str(part) for part in parts if part),
        tuple(command for _, command in typed),
        tuple(date for date, _ in typed),
        steps[-1][1],
        len(run.records),
        sum(planned.values()) if planned else None,
        tuple(missing),
    )


def traces_of(runs: Sequence[Run]) -> dict[Name, Path]:
    """The trace of each record that has one in its run's folder."""
    traces: dict[Name, Path] = {}
    for run in runs:
        stored = {path.name for path in run.folder.glob("traces/*.jsonl")}
        paths = {record.name: run.folder / trace_file(record.name) for record in run.records}
        traces |= {name: path for name, path in paths.items() if path.name in stored}
    return traces


def planned_records(run: Run) -> dict[Cell, int] | None:
    """By cell. Folders of earlier versions do not say; with one model their grid does."""
    if cells := run.head.get("cells"):
        return {Cell(model, task, decoder, length): count for model, task, decoder, length, count in cells}
    spec = run.spec
    if len(spec.get("models", ())) != 1 or not all(key in spec for key in ("decoders", "lengths", "problems", "tasks")):
        return None
    lengths, repeats = spec["lengths"], len(spec["seeds"]) * spec["samples"]
    return {
        Cell(spec["models"][0], task, decoder, lengths[place % len(lengths)]): repeats * problems["count"]
        for task, problems in zip(spec["tasks"], spec["problems"], strict=True)
        for place, decoder in enumerate(spec["decoders"])
    }


def missing_table(sources: Sequence[Source]) -> list[Table]:
    """The cells that lack records; no table where nothing is known to be missing."""
    rows = [
        (
            decoder_label(cell.decoder, cell.length),
            task_label(cell.task),
            str(cell.length),
            cell.model,
            f"{have} of {of}",
        )
        for source in sources
        for cell, have, of in source.missing
    ]
    if not rows:
        return []
    have, of = sum(each.records for each in sources), sum(each.planned or each.records for each in sources)
    notes = ["Figures of these cells are over fewer problems."]
    notes += [
        f"This completes {each.folder}: {each.last_command}" for each in sources if each.missing and each.last_command
    ]
    head = ("decoder", "task", "length", "model", "records")
    return [Table.of("missing", f"incomplete: {have} of {of} records", head, rows, notes)]
