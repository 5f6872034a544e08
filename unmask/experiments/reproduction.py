"""Run an experiment into its folder and write the results beside its records."""

from __future__ import annotations

import json
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch

from unmask.errors import UnmaskError
from unmask.experiments.archive import MEASURED, begin, read
from unmask.experiments.evidence import Evidence
from unmask.experiments.experiment import Experiment, Findings
from unmask.experiments.runner import Runner
from unmask.experiments.setup import Setup
from unmask.report import formats
from unmask.report.compare import cell_figures
from unmask.report.gather import gather, grouped
from unmask.report.statistics import FEWEST
from unmask.runs.files import write_whole


def reproduce(experiment: Experiment, setup: Setup, out: Path, runner: Runner, command: str) -> Evidence:
    """Resumes where it stopped; a finished experiment is only read."""
    parts = experiment.parts(setup)
    if not parts:
        raise UnmaskError(f"{experiment.name} has none of the benchmarks {', '.join(setup.benchmarks)}")
    begin(out, Evidence(experiment.name, command, setup, parts))
    if experiment.records:
        runner.run(setup, parts, out)
    if experiment.measure and not (out / MEASURED).exists():
        torch.set_float32_matmul_precision(runner.placement.precision)
        measured = experiment.measure(runner, setup)
        write_whole(out / MEASURED, json.dumps(measured, ensure_ascii=False, allow_nan=False) + "\n")
    return read(out)


def noted(findings: Findings, evidence: Evidence) -> Findings:
    """With a note below every table where there are too few problems to decide anything."""
    most = max((part.limit or FEWEST for part in evidence.parts), default=FEWEST)
    if most >= FEWEST:
        return findings
    note = f"n={most} at most: too few problems to decide anything."
    return replace(findings, tables=[replace(table, notes=(*table.notes, note)) for table in findings.tables])


def write_results(folder: Path, experiment: Experiment, evidence: Evidence, findings: Findings) -> None:
    """results.md, cells.csv, verdicts.json and the figures."""
    claims = [claim.json(experiment.source) for claim in findings.claims]
    write_whole(folder / "results.md", markdown(experiment, findings))
    write_whole(folder / "verdicts.json", json.dumps(claims, ensure_ascii=False, indent=1))
    if evidence.runs:
        write_whole(folder / "cells.csv", formats.comma_separated(cells(evidence)))
    for name, image in findings.images("svg", "png").items():
        write_whole(folder / name, image)


def cells(evidence: Evidence) -> list[dict[str, Any]]:
    """Approximate runs are gathered apart, and their decoder's label says how they are approximate."""
    recorded = (part for part in evidence.parts if part.name in evidence.runs)
    return [
        cell | {"decoder": " + ".join(filter(None, (cell["decoder"], approximation)))}
        for approximation, parts in grouped(recorded, attrgetter("approximate")).items()
        for cell in cell_figures(gather(evidence.runs[part.name] for part in parts))
    ]


def markdown(experiment: Experiment, findings: Findings) -> str:
    parts = [f"# {experiment.name} ({experiment.source})", experiment.question]
    if findings.claims:
        parts.append("\n".join(f"- {claim}" for claim in findings.claims))
    for table in findings.tables:
        parts += [f"**{table.title}**", *formats.table_markdown(table)]
    if findings.text:
        parts.append(f"```\n{findings.text}\n```")
    parts += [f"![{plot.title}]({plot.name}.svg)" for plot in findings.plots if plot.lines]
    parts += [f"![{name}.svg]({name}.svg)" for name in findings.pictures]
    return "\n\n".join(parts) + "\n"


def as_json(experiment: Experiment, evidence: Evidence, findings: Findings, out: Path) -> dict[str, Any]:
    return {
        "name": experiment.name,
        "source": experiment.source,
        "question": experiment.question,
        "out": str(out),
        "cells": cells(evidence),
        "measured": evidence.measured,
        "verdicts": [claim.json(experiment.source) for claim in findings.claims],
    }
