"""Run an experiment into its folder, and write what its records say beside them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from unmask.errors import UnmaskError
from unmask.experiments.bench import Bench
from unmask.experiments.experiment import Experiment, Findings, Verdict
from unmask.experiments.folder import MEASURED, Asked, begin, read
from unmask.experiments.found import Found
from unmask.experiments.setting import Setting
from unmask.report import formats
from unmask.report.plots import draw
from unmask.report.results import gather
from unmask.report.tables import as_json
from unmask.runs.store import Run, write_whole

SIGNS = {"holds": "✓", "does not hold": "✗", "not decided": "?", "not asked": "–"}


def reproduce(experiment: Experiment, setting: Setting, out: Path, bench: Bench, command: str) -> tuple[Asked, Found]:
    """Goes on where it stopped; a finished one is only read."""
    asked = Asked(experiment.name, command, setting, experiment.parts(setting))
    if not asked.parts:
        raise UnmaskError(f"{experiment.name} has none of the benchmarks {', '.join(setting.benchmarks)}")
    begin(out, asked)
    if experiment.measure is None:
        bench.run(setting, asked.parts, out)
    elif not (out / MEASURED).exists():
        torch.set_float32_matmul_precision(bench.precision)
        measured = experiment.measure(bench, setting)
        write_whole(out / MEASURED, json.dumps(measured, ensure_ascii=False, allow_nan=False) + "\n")
    return read(out)


def write_results(folder: Path, experiment: Experiment, found: Found, findings: Findings) -> list[Path]:
    """results.md, cells.csv, verdicts.json and the figures."""
    texts = {
        "results.md": markdown(experiment, findings),
        "verdicts.json": json.dumps([asdict(verdict) for verdict in findings.verdicts], ensure_ascii=False, indent=1),
    }
    if found.runs:
        texts["cells.csv"] = formats.comma_separated(cells(found))
    paths = []
    for name, text in texts.items():
        write_whole(folder / name, text)
        paths.append(folder / name)
    for name, image in pictures(findings, ("svg", "png")).items():
        (folder / name).write_bytes(image)
        paths.append(folder / name)
    return paths


def cells(found: Found) -> list[dict[str, Any]]:
    """Those of an approximate run are gathered apart, and their decoder says so."""
    made: dict[str, list[Run]] = {}
    for part in found.parts:
        if part.name in found.runs:
            made.setdefault(part.approximate, []).append(found.runs[part.name])
    return [
        cell | {"decoder": " + ".join(filter(None, (cell["decoder"], how)))}
        for how, runs in made.items()
        for cell in as_json(gather(runs), [])
    ]


def pictures(findings: Findings, kinds: tuple[str, ...]) -> dict[str, bytes]:
    """By file name."""
    drawn = {f"{plot.name}.{kind}": draw(plot, kind) for plot in findings.plots if plot.lines for kind in kinds}
    return drawn | {name: image for name, image in findings.pictures.items() if name.rpartition(".")[2] in kinds}


def markdown(experiment: Experiment, findings: Findings) -> str:
    parts = [f"# {experiment.name} ({experiment.source})", experiment.question.strip()]
    if findings.verdicts:
        parts.append("\n".join(f"- {said(verdict)}" for verdict in findings.verdicts))
    for table in findings.tables:
        parts += [f"**{table.title}**", *formats.table_markdown(table)]
    if findings.text:
        parts.append(f"```\n{findings.text}\n```")
    parts += [f"![{plot.title}]({plot.name}.svg)" for plot in findings.plots if plot.lines]
    parts += [f"![{name}]({name})" for name in findings.pictures if name.endswith(".svg")]
    return "\n\n".join(parts) + "\n"


def said(verdict: Verdict) -> str:
    return f"{SIGNS[verdict.outcome]} {verdict.outcome}: {verdict.claim} — {verdict.said}"


def plain(experiment: Experiment, found: Found, findings: Findings, out: Path) -> dict[str, Any]:
    return {
        "name": experiment.name,
        "source": experiment.source,
        "question": experiment.question.strip(),
        "out": str(out),
        "cells": cells(found),
        "measured": found.measured,
        "verdicts": [asdict(verdict) for verdict in findings.verdicts],
    }
