"""A report of runs: what the records say, in every form it can be had in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError
from unmask.report import formats, page
from unmask.report.compare import Pair, choose_baseline
from unmask.report.plots import Plot, draw, plots
from unmask.report.results import Group, gather
from unmask.report.settings import said, shared_settings
from unmask.report.tables import Table, as_json, pairs_of, tables
from unmask.runs.store import Run, read_run


@dataclass(frozen=True)
class Report:
    """Made of records alone: neither their order nor what was measured with them changes a byte of it."""

    groups: Sequence[Group]  # one a model and task
    baseline: str | None  # what the others are compared with
    settings: Mapping[str, Any]  # that all runs share and that are not the usual ones
    timing: bool = False  # also show what was measured, which no two runs share

    @cached_property
    def pairs(self) -> list[Pair]:
        return pairs_of(self.groups, self.baseline)

    @cached_property
    def tables(self) -> list[Table]:
        return tables(self.groups, self.pairs, self.baseline, said(self.settings), self.timing)

    @cached_property
    def plots(self) -> list[Plot]:
        return plots(self.groups)

    @property
    def legend(self) -> list[tuple[str, str]]:
        """What each label stands for, at each length."""
        found = {
            (row.label, f"L={length}: {cell.decoder}")
            for group in self.groups
            for row in group.rows
            for length, cell in row.cells.items()
            if row.samples == 1
        }
        by_label: dict[str, list[str]] = {}
        for label, full in sorted(found, key=lambda one: (one[0], len(one[1].split(":")[0]), one[1])):
            by_label.setdefault(label, []).append(full)
        return [(label, " · ".join(fulls)) for label, fulls in by_label.items()]

    def json(self) -> dict[str, Any]:
        head = {"format": 1, "settings": dict(self.settings), "against": self.baseline}
        return head | {"cells": as_json(self.groups, self.pairs)}

    def markdown(self) -> str:
        return formats.markdown(self.tables, self.legend)

    def csv(self) -> str:
        return formats.comma_separated(as_json(self.groups, self.pairs))

    def html(self) -> str:
        drawn = [(plot, draw(plot, "svg")) for plot in self.plots]
        return page.page(self.groups, self.tables, drawn, self.legend, self.baseline)

    def images(self) -> dict[str, bytes]:
        """By file name."""
        return {f"{plot.name}.{kind}": draw(plot, kind) for plot in self.plots for kind in ("svg", "png")}


def report(runs: Sequence[Run], against: str | None = None, timing: bool = False) -> Report:
    groups = gather(runs)
    if not groups:
        names = ", ".join(repr(str(run.folder)) for run in runs)
        raise UnmaskError(f"nothing is recorded yet in {names}")
    return Report(groups, choose_baseline(groups, against), shared_settings(runs), timing)


def read(folders: Sequence[str | PathLike[str]]) -> list[Run]:
    for folder in folders:
        if not Path(folder).exists():
            raise UnmaskError(f"there is no folder {str(folder)!r}")
    return [read_run(folder) for folder in folders]
