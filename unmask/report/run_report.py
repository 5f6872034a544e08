"""A report of runs in every format, with its sources: each run's command, machine and missing records.

Runs are compared only if they were decoded and graded with the same settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError
from unmask.report import formats
from unmask.report.gather import Group, Series, gather, pass_curve
from unmask.report.html import render_page
from unmask.report.plots import Plot, draw, report_plots
from unmask.report.statistics import wilson
from unmask.report.tables import Pair, Table, choose_baseline, compare_with, report_tables
from unmask.runs.grid import decoder_label, task_label
from unmask.runs.record import Cell, Name, trace_file
from unmask.runs.settings import Decoding, Placement
from unmask.runs.store import Run, read_run

CELL = ("decoder", "length", "seed")  # settings of a cell, not of a run
SETTINGS = {name: value for name, value in Decoding().to_dict().items() if name not in CELL}
USUAL: dict[str, Any] = {"metric": "ours", **SETTINGS, "cache": "none", "precision": Placement().precision}
CHECK = "check"  # runs may differ in it: then decoders are named with theirs
APPROXIMATE = {"early_end": "Early end", "cache": "A cache"}


@dataclass(frozen=True)
class Source:
    """One run of a report."""

    folder: str
    unmask: str  # the version that created the run
    created: str  # the date
    machine: str
    commands: tuple[str, ...]  # the first command, and those that extended the run
    dates: tuple[str, ...]  # one per command
    last_command: str  # the command that completes the run; empty if it was started from Python
    records: int  # number of records
    planned: int | None  # records of the finished run; None if its folder does not say
    missing: tuple[tuple[Cell, int, int], ...]  # incomplete cells: number of records, and number planned

    @property
    def progress(self) -> str:
        return f"incomplete: {self.records} of {self.planned} records" if self.missing else f"{self.records} records"

    def json(self) -> dict[str, Any]:
        missing = [{**cell._asdict(), "records": have, "planned": of} for cell, have, of in self.missing]
        return {**asdict(self), "complete": self.planned and not self.missing, "missing": missing}


def source_of(run: Run) -> Source:
    """Read the source of a run from its header."""
    head, machine = run.head, run.head.get("machine", {})
    planned = {Cell(*cell): count for *cell, count in head.get("cells") or ()}  # empty if the header does not say
    have = Counter(record.cell for record in run.records)
    missing = [(cell, have[cell], count) for cell, count in planned.items() if have[cell] < count]
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


@dataclass(frozen=True)
class RunReport:
    """A function of the records: neither their order nor their timings change a byte of it, apart from `sources`."""

    groups: Sequence[Group]  # one per model and task
    baseline: str | None  # the decoder that the others are compared with
    settings: Mapping[str, Any]  # settings that all runs share and that are not the defaults
    sources: Sequence[Source] = ()  # the runs
    timing: bool = False  # also show timings, which differ from run to run
    traces: Mapping[Name, Path] = field(default_factory=dict)  # by record, the file of its trace

    @cached_property
    def pairs(self) -> list[Pair]:
        return [pair for group in self.groups for pair in compare_with(group, self.baseline)]

    @cached_property
    def tables(self) -> list[Table]:
        settings = describe_settings(self.settings)
        tables = report_tables(self.groups, self.pairs, self.baseline, settings, self.timing)
        return missing_table(self.sources) + tables

    @cached_property
    def plots(self) -> list[Plot]:
        return report_plots(self.groups)

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Return the full spec of each label, at each length."""
        specs: dict[str, dict[int, str]] = {}
        for group in self.groups:
            for series in group.series:
                for length, cell in series.cells.items() if series.samples == 1 else ():
                    specs.setdefault(series.label, {})[length] = f"L={length}: {cell.decoder}"
        return [(label, " · ".join(specs[label][at] for at in sorted(specs[label]))) for label in sorted(specs)]

    def json(self) -> dict[str, Any]:
        head = {"format": 1, "settings": dict(self.settings), "against": self.baseline}
        head |= {"runs": [source.json() for source in self.sources]}
        return head | {"cells": cell_figures(self.groups, self.pairs)}

    def markdown(self) -> str:
        return formats.markdown(self.tables, self.legend)

    def latex(self) -> str:
        return formats.latex(self.tables, self.legend)

    def csv(self) -> str:
        return formats.comma_separated(cell_figures(self.groups, self.pairs))

    def html(self, page: Path | None = None) -> str:
        """Return a page whose links to traces work in the file `page`, or in a file of this folder."""
        return render_page(self, page or Path("report.html"))

    def images(self) -> dict[str, bytes]:
        """Return every plot by file name."""
        return {f"{plot.name}.{kind}": draw(plot, kind) for plot in self.plots for kind in ("svg", "png", "pdf")}


def run_report(runs: Sequence[Run], against: str | None = None, timing: bool = False) -> RunReport:
    """Report runs, compared with the decoder `against`, or with low-confidence if it was run."""
    groups = gather(runs)
    if not groups:
        names = ", ".join(repr(str(run.folder)) for run in runs)
        raise UnmaskError(f"a report needs at least 1 record, got none in {names}")
    baseline = choose_baseline(groups, against)
    for group in groups:
        group.series.sort(key=lambda series: series.label != baseline)  # the baseline is the first row
    sources = [source_of(run) for run in runs]
    return RunReport(groups, baseline, shared_settings(runs), sources, timing, traces_of(runs))


def read_runs(folders: Sequence[str | PathLike[str]]) -> list[Run]:
    for folder in folders:
        if not Path(folder).exists():
            raise UnmaskError(f"there is no folder {str(folder)!r}")
    return [read_run(folder) for folder in folders]


def shared_settings(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the settings that are not the defaults; raise an error if two runs differ in one."""
    for first, second in combinations(runs, 2):
        models = set(first.spec.get("models", ())) & set(second.spec.get("models", ()))
        for key in (*(key for key in USUAL if key != CHECK), *(["dtype"] if models else [])):
            before, after = (run.spec.get(key, USUAL.get(key)) for run in (first, second))
            if before != after:
                raise UnmaskError(
                    f"{str(first.folder)!r} and {str(second.folder)!r} differ in {key} ({before} and {after}): "
                    "their figures do not compare, report them separately"
                )
    checks = {run.check for run in runs}
    shared = {key: usual for key, usual in USUAL.items() if key != CHECK or len(checks) == 1}
    return {key: runs[0].spec[key] for key, usual in shared.items() if runs[0].spec.get(key, usual) != usual}


def describe_settings(settings: Mapping[str, Any]) -> str:
    """Describe settings in a sentence, which is empty if all are the defaults."""
    if not settings:
        return ""
    words = [key if value is True else f"{key}={value}" for key, value in settings.items()]
    approximate = [f" {name} is approximate." for key, name in APPROXIMATE.items() if key in settings]
    return f"Run with {', '.join(words)}." + "".join(approximate)


def traces_of(runs: Sequence[Run]) -> dict[Name, Path]:
    """Return the trace file of each record that has one in the folder of its run."""
    traces: dict[Name, Path] = {}
    for run in runs:
        stored = {path.name for path in run.folder.glob("traces/*.jsonl")}
        paths = {record.name: run.folder / trace_file(record.name) for record in run.records}
        traces |= {name: path for name, path in paths.items() if path.name in stored}
    return traces


def missing_table(sources: Sequence[Source]) -> list[Table]:
    """Return a table of the incomplete cells, or no table if nothing is missing."""
    rows = [
        (decoder_label(at.decoder, at.length), task_label(at.task), str(at.length), at.model, f"{have} of {of}")
        for source in sources
        for at, have, of in source.missing
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


def cell_figures(groups: Sequence[Group], pairs: Sequence[Pair] = ()) -> list[dict[str, Any]]:
    """Return one JSON object per cell, with everything that the tables show."""
    compared = {(id(pair.series), pair.length): asdict(pair.comparison) | {"p_corrected": pair.p} for pair in pairs}
    return [
        _figures(group, series, length) | {"against": compared.get((id(series), length))}
        for group in groups
        for series in group.series
        for length in series.results
    ]


def _figures(group: Group, series: Series, length: int) -> dict[str, Any]:
    result, records = series.results[length], series.records[length]
    score = result.estimate("score")
    interval = wilson(result.accuracy.value, result.accuracy.n) if result.accuracy.value is not None else (None, None)
    curve = pass_curve(records) if series.samples == 1 else {}
    return {
        "model": group.model,
        "task": group.task,
        "task_version": records[0].task_version,
        "decoder": series.label,
        "spec": records[0].decoder,
        "vote": series.samples if series.samples > 1 else None,
        "length": length,
        "problems": result.accuracy.n,
        "draws": result.draws,
        "failed": result.failed,
        "accuracy": result.accuracy.value,
        "error": result.accuracy.error,
        "low": interval[0],
        "high": interval[1],
        "score": score.value,
        "score_error": score.error,
        **result.cost,
        "pass": {str(k): estimate.value for k, estimate in curve.items()} if len(curve) > 1 else {},
    }
