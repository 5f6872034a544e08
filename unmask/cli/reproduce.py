"""`unmask reproduce`: run the paper's tables and figures and print them beside the paper's own figures."""

import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.boundary import print_json, resumable
from unmask.cli.options import one_of, repeatable
from unmask.cli.progress import board
from unmask.errors import UnmaskError
from unmask.experiments import EXPERIMENTS, Experiment, find
from unmask.experiments import run as reproduction
from unmask.experiments.archive import pack_folder
from unmask.experiments.run import PlannedCell, duration, plan, totals
from unmask.experiments.runner import Runner
from unmask.experiments.setup import Setup, setup_for
from unmask.report import formats
from unmask.report.tables import Table
from unmask.runs.engine import make_engine
from unmask.runs.settings import Placement
from unmask.tasks import data
from unmask.tasks.sandbox.run import Confinement

FOLDERS = ("--out", "-o", "--compact", "--data")


@app.command()
@options.expand("memory")
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="From `unmask list experiments`.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every experiment.")] = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="One problem per cell, on at most three benchmarks, to see that everything works."
        ),
    ] = False,
    plan_: Annotated[bool, typer.Option("--plan", help="Only print the cells, rows and time.")] = False,
    model: options.ModelName = options.MODEL,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Gets a folder per experiment; resumes where it stopped.")
    ] = Path("runs/reproduce"),
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Problems per benchmark.")] = None,
    length: Annotated[list[int] | None, repeatable("--length", "-l", metavar="N", help="Other lengths")] = None,
    benchmark: Annotated[list[str] | None, repeatable("--benchmark", metavar="NAME", help="Only this one")] = None,
    method: Annotated[list[str] | None, repeatable("--method", metavar="NAME", help="Only this row of tables")] = None,
    beams: Annotated[int | None, typer.Option(metavar="K", min=1, help="Another K of the search.")] = None,
    temperature: Annotated[
        float | None, typer.Option(metavar="τ", min=0.0, help="Another τ of the search, AR and votes.")
    ] = None,
    grid: Annotated[bool, typer.Option("--grid", help="table-1: also choose K and τ, on untested problems.")] = False,
    seeds: Annotated[int | None, typer.Option(metavar="N", min=1, help="Seeds of every method that draws.")] = None,
    samples: Annotated[int | None, typer.Option(metavar="N", min=1, help="Draws for pass@k.")] = None,
    compact: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also pack each experiment's records, without texts, in a file.")
    ] = None,
    data_: options.DataFolder = None,
    prompts: options.Wording = None,
    allow_code: options.AllowCode = False,
    sandbox: options.Sandbox = None,
    engine: options.EngineName = "local",
    workers: options.Workers = None,
    address: options.Address = None,
    retry: options.Retry = False,
    *,
    placement: options.PlacementFields,
    json: options.Json = False,
) -> None:
    """Run the paper's experiments, by default on the embedded model, and print our figures beside the paper's.

    \b
    Examples:
      unmask reproduce --all --quick
      unmask reproduce table-1 --limit 50 --out runs/reproduce
      unmask reproduce table-1 --model GSAI-ML/LLaDA-8B-Instruct --plan
    """
    experiments = _experiments(names or [], all_)
    lists: dict[str, Any] = {"lengths": length, "benchmarks": benchmark, "methods": method}
    numbers: dict[str, Any] = {"samples": samples, "beams": beams, "temperature": temperature, "seeds": seeds}
    setup = setup_for(model, quick=quick, limit=limit, grid=grid, **lists, **numbers)
    if data_ is not None:
        data.use(data_)
    chosen = Placement(**placement)
    if plan_:
        _show_plan(experiments, setup, chosen.chosen_device, prompts, json)
        return
    allowed = {"prompts": prompts, "allow_code": allow_code, "sandbox": one_of(Confinement, "--sandbox", sandbox)}
    local = engine == "local"
    with resumable(lambda: f"every whole record is kept in {str(out)!r}"), board() as watch:
        runner = Runner(make_engine(engine, workers, address), chosen, local, retry=retry, watch=watch, **allowed)
        results = [_run(each, setup, out / each.name, runner, compact, json) for each in experiments]
    if json:
        print_json({"experiments": results})


def _experiments(names: list[str], every: bool) -> list[Experiment]:
    if every == bool(names):
        raise UnmaskError(f"name experiments or give --all: known: {', '.join(EXPERIMENTS)}")
    return list(EXPERIMENTS.values()) if every else [find(name) for name in names]


def _run(
    experiment: Experiment, setup: Setup, out: Path, runner: Runner, compact: Path | None, quiet: bool
) -> dict[str, Any]:
    evidence = reproduction.reproduce(experiment, setup, out, runner, command())
    findings = reproduction.noted(experiment.findings(evidence), evidence)
    reproduction.write_results(out, experiment, evidence, findings)
    if compact is not None:
        pack_folder(out, compact / f"{experiment.name}.jsonl.gz")
    if not quiet:
        print(f"{experiment.name} ({experiment.source}): {experiment.question}\n", flush=True)
        formats.terminal(findings.tables)
        print("\n".join([*map(str, findings.claims), *([findings.text] if findings.text else [])]))
        print(f"Written to {out}\n", flush=True)
    return reproduction.as_json(experiment, evidence, findings, out)


def command() -> str:
    """The command as it was typed, without folders, so that a result says how to get it again."""
    words = iter(sys.argv[1:])
    kept = []
    for word in words:
        flag, equals, _ = word.partition("=")
        if flag not in FOLDERS:
            kept.append(word)
        elif not equals:
            next(words, None)
    return shlex.join(["unmask", *kept])


def _show_plan(experiments: list[Experiment], setup: Setup, device: str, prompts: str | None, as_json: bool) -> None:
    cells = [cell for experiment in experiments for cell in plan(experiment, setup, device, prompts)]
    total = totals(cells)
    if as_json:
        print_json({"device": device, "cells": list(map(asdict, cells)), **total})
        return
    head = ("experiment", "benchmark", "task", "method", "L", "K", "τ", "block", "steps", "n", "wording", "metric")
    head += ("seeds", "problems", "draws", "forward passes", "time")
    title = (
        f"{len(cells)} cells, {total['forward_passes']:,} rows, about {duration(total['hours'])} of one {device} device"
    )
    note = "An upper bound: identical rows of a problem are computed once."
    tables = [Table.of("timing", title, head, list(map(_planned, cells)), [note])]
    if len(experiments) > 1:
        tables.append(
            Table.of("timing", title, ("experiment", "cells", "forward passes", "time"), list(_by_experiment(cells)))
        )
    formats.terminal(tables)


def _by_experiment(cells: list[PlannedCell]) -> Iterator[tuple[str, ...]]:
    for name, group in groupby(cells, attrgetter("experiment")):
        every = list(group)
        total = totals(every)
        yield name, f"{len(every):,}", f"{total['forward_passes']:,}", duration(total["hours"])


def _planned(cell: PlannedCell) -> tuple[str, ...]:
    numbers = (cell.length, cell.beams, cell.temperature, cell.block or "–", cell.steps or "–", cell.votes)
    rules = (cell.wording, cell.metric, " ".join(map(str, cell.seeds)))
    counts = (str(cell.problems), str(cell.draws), f"{cell.rows:,}", duration(cell.hours))
    return (cell.experiment, cell.benchmark, cell.task, cell.method, *map(str, numbers), *rules, *counts)
