"""An experiment's rows and approximate time, computed before anything runs. Run an experiment into its folder and write the results beside its records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch

from unmask.core import Decoder, decoder
from unmask.decoders import OrderSearch, TokenSearch
from unmask.errors import UnmaskError
from unmask.experiments.archive import MEASURED, begin, read
from unmask.experiments.experiment import Experiment, Findings
from unmask.experiments.results import Evidence
from unmask.experiments.runner import Runner
from unmask.experiments.setup import Setup
from unmask.models.load import inspect_checkpoint
from unmask.report import formats
from unmask.report.compare import cell_figures
from unmask.report.gather import gather, grouped
from unmask.report.statistics import FEWEST
from unmask.runs.files import write_whole
from unmask.tasks import task
from unmask.tasks.published.benchmark import Benchmark

PARAMETERS = 8_015_581_184  # of LLaDA-8B; assumed for models that are not on this machine
# Floating-point operations per second, from the measurements in docs/cluster.md, for two cores of a CPU from those in
# docs/journal.md. Layers as small as the embedded model's do not fill a GPU.
LARGE_ON_GPU, SMALL_ON_GPU, ON_CPU = 4.45e14, 5e13, 1e11
LARGE = 10**9  # parameters


@dataclass(frozen=True)
class PlannedCell:
    experiment: str
    benchmark: str
    task: str  # that is run for it
    method: str
    spec: str  # every default written out
    length: int
    beams: int  # K; 1 where nothing is searched
    temperature: float  # τ; 0 takes the likeliest token
    block: int | None
    steps: int | None
    votes: int  # n
    wording: str  # "ours", or the prompts file
    metric: str
    seeds: tuple[int, ...]
    problems: int
    draws: int  # per problem: seeds times samples
    rows: int  # sent through the network in all; the maximum, if it depends on the texts
    hours: float  # of one device


def plan(experiment: Experiment, setup: Setup, device: str, prompts: str | None = None) -> list[PlannedCell]:
    size, cells = parameters(setup.model), []
    for part in experiment.parts(setup):
        known = setup.sizes.get(part.benchmark)
        problems = min(count for count in (part.limit, known) if count is not None)  # endless tasks have a limit
        draws = len(part.seeds) * part.samples
        for method, length in product(part.methods, part.lengths):
            resolved = decoder.make(method.spec).resolved(length)
            rows = resolved.max_forward_passes(length) * problems * draws
            seconds = rows * (setup.prompt + length) * 2 * size / rate_of(device, size)
            names = (experiment.name, part.benchmark, part.task, method.label, decoder.spec(resolved), length)
            rules = (_wording(part.task, prompts), setup.metric, part.seeds)
            cells.append(
                PlannedCell(*names, *_settings(resolved, length), *rules, problems, draws, rows, seconds / 3600)
            )
    return cells


def _settings(resolved: Decoder, length: int) -> tuple[int, float, int | None, int | None, int]:
    """K, τ, block, steps and n; a vote has those of the decoder inside it. Order and token search write one a step."""
    inner = getattr(resolved, "inner", resolved)
    beams = getattr(inner, "beams", 1)
    temperature = getattr(inner, "temperature", 0.0)
    steps = length if isinstance(inner, OrderSearch | TokenSearch) else getattr(inner, "steps", None)
    return beams, temperature, getattr(inner, "block", None), steps, getattr(resolved, "n", 1)


def _wording(spec: str, prompts: str | None) -> str:
    """Generated tasks have one wording, their own."""
    return "ours" if prompts is None or not isinstance(task.make(spec), Benchmark) else Path(prompts).name


def parameters(model: str) -> int:
    """Of a model on this machine; nothing is fetched from the hub for an estimate."""
    try:
        return PARAMETERS if "/LLaDA" in model else inspect_checkpoint(model).parameters
    except UnmaskError:
        return PARAMETERS


def rate_of(device: str, size: int) -> float:
    if device == "cpu":
        return ON_CPU
    return LARGE_ON_GPU if size >= LARGE else SMALL_ON_GPU


def totals(cells: Sequence[PlannedCell]) -> dict[str, int | float]:
    return {"forward_passes": sum(cell.rows for cell in cells), "hours": sum(cell.hours for cell in cells)}


def duration(hours: float) -> str:
    if hours >= 1:
        return f"{hours:,.1f} h"
    return f"{60 * hours:.1f} min" if hours >= 1 / 60 else f"{3600 * hours:.1f} s"


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
