"""A report of runs in every format. Runs are compared only if they were decoded and graded with the same settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError
from unmask.report import formats
from unmask.report import html as webpage
from unmask.report.compare import Pair, cell_figures, choose_baseline, compare_with
from unmask.report.formats import latex
from unmask.report.gather import Group, gather
from unmask.report.plots import Plot, draw, report_plots
from unmask.report.provenance import Source, missing_table, source_of, traces_of
from unmask.report.tables import Table, report_tables
from unmask.runs.record import Name
from unmask.runs.settings import Decoding, Placement
from unmask.runs.store import Run, read_run

CELL = ("decoder", "length", "seed")  # of a cell, not of a run
SETTINGS = {name: value for name, value in Decoding().to_dict().items() if name not in CELL}
USUAL: dict[str, Any] = {"metric": "ours", **SETTINGS, "cache": "none", "precision": Placement().precision}
APPROXIMATE = {"early_end": "Early end", "cache": "A cache"}


@dataclass(frozen=True)
class RunReport:
    """A function of the records: neither their order nor their timings change a byte of it, apart from `sources`."""

    groups: Sequence[Group]  # one per model and task
    baseline: str | None  # the decoder that the others are compared with
    settings: Mapping[str, Any]  # those that all runs share and that are not the usual ones
    sources: Sequence[Source] = ()  # the runs
    timing: bool = False  # also show timings, which differ from run to run
    traces: Mapping[Name, Path] = field(default_factory=dict)  # of the records that have one

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
        """The full spec of each label, at each length."""
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
        return latex(self.tables, self.legend)

    def csv(self) -> str:
        return formats.comma_separated(cell_figures(self.groups, self.pairs))

    def html(self, page: Path | None = None) -> str:
        """A page whose links to traces work in the file `page`, or in a file of this folder."""
        images = [(plot, draw(plot, "svg")) for plot in self.plots]
        data = webpage.outputs(self.groups, self.baseline, self.traces, page or Path("report.html"))
        return webpage.render_page(self.groups, self.tables, images, self.legend, self.sources, data)

    def images(self) -> dict[str, bytes]:
        """By file name."""
        return {f"{plot.name}.{kind}": draw(plot, kind) for plot in self.plots for kind in ("svg", "png", "pdf")}


def run_report(runs: Sequence[Run], against: str | None = None, timing: bool = False) -> RunReport:
    groups = gather(runs)
    if not groups:
        names = ", ".join(repr(str(run.folder)) for run in runs)
        raise UnmaskError(f"nothing is recorded yet in {names}")
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
    """Those that are not the usual ones; runs that do not share them are refused."""
    for first, second in combinations(runs, 2):
        models = set(first.spec.get("models", ())) & set(second.spec.get("models", ()))
        for key in (*USUAL, *(["dtype"] if models else [])):
            before, after = (run.spec.get(key, USUAL.get(key)) for run in (first, second))
            if before != after:
                raise UnmaskError(
                    f"{str(first.folder)!r} and {str(second.folder)!r} differ in {key} ({before} and {after}): "
                    "their figures do not compare, report them apart"
                )
    return {key: runs[0].spec[key] for key, usual in USUAL.items() if runs[0].spec.get(key, usual) != usual}


def describe_settings(settings: Mapping[str, Any]) -> str:
    """In a sentence; empty if all are the usual ones."""
    if not settings:
        return ""
    words = [key if value is True else f"{key}={value}" for key, value in settings.items()]
    approximate = [f" {name} is approximate." for key, name in APPROXIMATE.items() if key in settings]
    return f"Run with {', '.join(words)}." + "".join(approximate)
