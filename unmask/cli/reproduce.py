"""`unmask reproduce`: a table or figure of the paper, run and printed beside the paper's own figures."""

import json as jsons
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.progress import board
from unmask.cli.run_options import one_of
from unmask.errors import UnmaskError
from unmask.experiments import EXPERIMENTS, Experiment, find, plan
from unmask.experiments.bench import Bench
from unmask.experiments.folder import pack_folder
from unmask.experiments.reproduce import plain, said, write_results
from unmask.experiments.reproduce import reproduce as run
from unmask.experiments.setting import Setting, setting_for
from unmask.report import formats
from unmask.report.tables import Entry, Table
from unmask.runs.engines import make_engine
from unmask.runs.placement import Precision
from unmask.tasks import data
from unmask.tasks.sandbox import Confinement

FOLDERS = ("--out", "-o", "--compact", "--data")


def _many(*flags: str, metavar: str, help: str) -> Any:
    return typer.Option(*flags, metavar=metavar, help=help + "; repeatable.")


@app.command()
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="From `unmask list experiments`.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every experiment.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="4 problems a cell: to see that everything works.")] = False,
    plan_: Annotated[bool, typer.Option("--plan", help="Only say which cells, how many rows, how long.")] = False,
    model: options.ModelName = options.MODEL,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="A folder each goes into; goes on where it stopped.")
    ] = Path("runs/reproduce"),
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Problems of each benchmark.")] = None,
    length: Annotated[list[int] | None, _many("--length", "-l", metavar="N", help="Other lengths")] = None,
    benchmark: Annotated[list[str] | None, _many("--benchmark", metavar="NAME", help="Only this one")] = None,
    method: Annotated[list[str] | None, _many("--method", metavar="NAME", help="Only this row, such as ots")] = None,
    grid: Annotated[
        bool,
        typer.Option("--grid", help="table-1: also search K and τ, chosen on other problems than the tested ones."),
    ] = False,
    samples: Annotated[int | None, typer.Option(metavar="N", min=1, help="Draws of pass@k.")] = None,
    compact: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also pack the records, without texts, into one file each.")
    ] = None,
    data_: Annotated[str | None, typer.Option("--data", metavar="DIR", help="Holds the benchmark files.")] = None,
    prompts: Annotated[str | None, typer.Option(metavar="FILE", help="A JSON file with another wording.")] = None,
    allow_code: Annotated[bool, typer.Option("--allow-code", help="Run programs that a model wrote.")] = False,
    sandbox: Annotated[str | None, typer.Option(help="namespaces, or rlimits to accept less.")] = None,
    engine: Annotated[str, typer.Option(help="local: this process; ray: workers on one or many machines.")] = "local",
    workers: Annotated[int | None, typer.Option(metavar="N", help="Ray's; one a GPU or core without it.")] = None,
    address: Annotated[str | None, typer.Option(metavar="A", help="Of a Ray cluster; started here without it.")] = None,
    batch: Annotated[int | None, typer.Option(metavar="N", help="Problems together; found without it.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Try problems again whose records are failures.")] = False,
    device: options.Device = None,
    dtype: options.Dtype = None,
    precision: options.Precision = "highest",
    compiled: options.Compile = False,
    json: options.Json = False,
) -> None:
    """Run the paper's experiments, by default on the embedded model, and print our figures beside the paper's.

    \b
    Examples:
      unmask reproduce --all --quick
      unmask reproduce table-1 --limit 50 --out runs/reproduce
      unmask reproduce table-1 --model GSAI-ML/LLaDA-8B-Instruct --plan
    """
    asked = _asked(names or [], all_)
    setting = setting_for(
        model,
        quick=quick,
        limit=limit,
        lengths=length or (),
        benchmarks=benchmark or (),
        samples=samples,
        methods=method or (),
        grid=grid,
    )
    if data_ is not None:
        data.use(data_)
    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if plan_:
        _show_plan([line for one in asked for line in plan.plan(one, setting, where)], where, json)
        return
    made = make_engine(engine, workers, address)
    words: dict[str, Any] = {"batch": batch, "device": device, "dtype": dtype, "prompts": prompts, "retry": retry}
    words |= {"compiled": compiled, "allow_code": allow_code, "sandbox": one_of(Confinement, "--sandbox", sandbox)}
    words |= {"precision": one_of(Precision, "--precision", precision), "here": engine == "local"}
    with board() as watch:
        bench = Bench(made, watch=watch, **words)
        results = [_one(one, setting, out / one.name, bench, compact, json) for one in asked]
    if json:
        print(jsons.dumps({"experiments": results}, ensure_ascii=False, allow_nan=False))


def _asked(names: list[str], every: bool) -> list[Experiment]:
    if every == bool(names):
        raise UnmaskError(f"name experiments or give --all: known: {', '.join(EXPERIMENTS)}")
    return list(EXPERIMENTS.values()) if every else [find(name) for name in names]


def _one(
    experiment: Experiment, setting: Setting, out: Path, bench: Bench, compact: Path | None, quiet: bool
) -> dict[str, Any]:
    _, found = run(experiment, setting, out, bench, command())
    findings = experiment.findings(found)
    write_results(out, experiment, found, findings)
    if compact is not None:
        pack_folder(out, compact / f"{experiment.name}.jsonl.gz")
    if not quiet:
        print(f"{experiment.name} ({experiment.source}): {experiment.question.strip()}\n", flush=True)
        formats.terminal(findings.tables, formats.console(wide=not sys.stdout.isatty()))
        print("\n".join([*map(said, findings.verdicts), *([findings.text] if findings.text else [])]))
        print(f"Written to {out}\n", flush=True)
    return plain(experiment, found, findings, out)


def command() -> str:
    """As it was typed, so that a result can say how it is had again; folders are each reader's own."""
    words = iter(sys.argv[1:])
    kept = []
    for word in words:
        flag, equals, _ = word.partition("=")
        if flag not in FOLDERS:
            kept.append(word)
        elif not equals:
            next(words, None)
    return shlex.join(["unmask", *kept])


def _show_plan(lines: list[plan.Line], device: str, as_json: bool) -> None:
    total = plan.totals(lines)
    if as_json:
        print(jsons.dumps({"device": device, "cells": plan.as_json(lines), **total}, ensure_ascii=False))
        return
    head = ("experiment", "benchmark", "method", "length", "problems", "draws", "rows", "time")
    body = [tuple(map(Entry, _words(line))) for line in lines]
    whole = f"{len(lines)} cells, {total['rows']:,} rows, about {plan.duration(total['hours'])} of one {device} device"
    note = "An upper estimate: identical rows of a problem are computed once."
    table = Table("timing", whole, head, tuple(body), (note,))
    formats.terminal([table], formats.console(wide=not sys.stdout.isatty()))


def _words(line: plan.Line) -> tuple[str, ...]:
    size = (str(line.length), str(line.problems), str(line.draws), f"{line.rows:,}", plan.duration(line.hours))
    return (line.experiment, line.benchmark, line.method, *size)
