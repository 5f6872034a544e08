"""`unmask reproduce`: run the paper's tables and figures and print them beside the paper's own figures."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unmask.cli import options
from unmask.cli.boundary import print_json, resumable
from unmask.cli.progress import board
from unmask.errors import UnmaskError, check_at_least

if TYPE_CHECKING:
    from unmask.experiments import Experiment
    from unmask.experiments.run import PlannedCell, Runner
    from unmask.experiments.setup import Setup

FOLDERS = ("--out", "-o", "--compact", "--data")
PLAN_HEAD = ("experiment", "benchmark", "task", "method", "L", "K", "τ", "block", "steps", "n", "wording", "metric")
PLAN_HEAD += ("seeds", "problems", "draws", "forward passes", "time")


@dataclass(frozen=True)
class ReproduceOptions:
    """The experiments to run, and changes of the paper's settings."""

    all: bool = False  # run every experiment
    quick: bool = False  # run one problem per cell on at most three benchmarks, as a check
    plan: bool = False  # only print the cells, forward passes and time
    model: str = options.MODEL  # a name from `unmask list models`
    out: Path = Path("runs/reproduce")  # parent of a folder per experiment; unfinished ones resume
    limit: int | None = None  # problems per benchmark
    length: list[int] | None = None  # replace the lengths
    benchmark: list[str] | None = None  # only this benchmark
    method: list[str] | None = None  # only this row of tables
    beams: int | None = None  # replace K of the search
    temperature: float | None = None  # replace τ of the search, AR and votes
    grid: bool = False  # table-1: also choose K and τ, on untested problems
    seeds: int | None = None  # seeds of every method that samples
    samples: int | None = None  # draws for pass@k
    compact: Path | None = None  # also pack each experiment's records, without texts, into this folder

    def __post_init__(self) -> None:
        check_at_least(1, limit=self.limit, beams=self.beams, seeds=self.seeds, samples=self.samples)
        check_at_least(0, temperature=self.temperature)

    def setup(self) -> Setup:
        from unmask.experiments.setup import setup_for

        lists: dict[str, Any] = {"lengths": self.length, "benchmarks": self.benchmark, "methods": self.method}
        names = ("quick", "limit", "grid", "samples", "beams", "temperature", "seeds")
        return setup_for(self.model, **lists, **{name: getattr(self, name) for name in names})


@options.expand("memory", "metric", model=options.MODEL, out=Path("runs/reproduce"))
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME…", help="Experiments from `unmask list experiments`.")
    ] = None,
    *,
    chosen: Annotated[dict[str, Any], (__name__, "ReproduceOptions")],
    tasks: options.TaskFields,
    work: options.EngineFields,
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
    from unmask.experiments.run import Runner
    from unmask.runs.settings import Placement

    given, where = ReproduceOptions(**chosen), Placement(**placement)
    experiments, setup = _experiments(names or [], given.all), given.setup()
    allowed, engine = options.TaskOptions(**tasks).settings(), options.EngineOptions(**work)
    if given.plan:
        _show_plan(experiments, setup, where.chosen_device, allowed["prompts"], json)
        return
    with resumable(lambda: f"every complete record is saved in {str(given.out)!r}"), board() as watch:
        runner = Runner(engine.make(), where, engine.local, retry=engine.retry, watch=watch, **allowed)
        results = [_run(each, setup, runner, given, json) for each in experiments]
    if json:
        print_json({"experiments": results})


def _experiments(names: list[str], every: bool) -> list[Experiment]:
    from unmask.experiments import EXPERIMENTS, find

    if every == bool(names):
        raise UnmaskError(f"name experiments or give --all: known: {', '.join(EXPERIMENTS)}")
    return list(EXPERIMENTS.values()) if every else [find(name) for name in names]


def _run(experiment: Experiment, setup: Setup, runner: Runner, given: ReproduceOptions, quiet: bool) -> dict[str, Any]:
    from unmask.experiments import run as reproduction
    from unmask.experiments.results import packed
    from unmask.report import formats
    from unmask.runs.store import write_lines

    out = given.out / experiment.name
    results = reproduction.reproduce(experiment, setup, out, runner, command())
    findings = reproduction.noted(experiment.findings(results), results)
    written = reproduction.write_results(out, experiment, results, findings)
    if given.compact is not None:
        write_lines(given.compact / f"{experiment.name}.jsonl.gz", packed(results))
    if not quiet:
        print(f"{experiment.name} ({experiment.source}): {experiment.question}\n", flush=True)
        formats.terminal(findings.tables)
        print("\n".join([*map(str, findings.claims), *([findings.text] if findings.text else [])]))
        print(f"Written to {out}\n", flush=True)
    return written


def command() -> str:
    """Return the command as it was typed, without folders, so that a result names the command that repeats it."""
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
    from unmask.experiments.run import duration, plan, totals
    from unmask.report import formats
    from unmask.report.tables import Table

    plans = {experiment.name: plan(experiment, setup, device, prompts) for experiment in experiments}
    cells = [cell for planned in plans.values() for cell in planned]
    total = totals(cells)
    if as_json:
        print_json({"device": device, "cells": list(map(asdict, cells)), **total})
        return
    cost = f"{total['forward_passes']:,} forward passes, about {duration(total['hours'])} of one {device} device"
    title, note = f"{len(cells)} cells, {cost}", "An upper bound: identical rows of a problem are computed once."
    tables = [Table.of("timing", title, PLAN_HEAD, map(_planned, cells), [note])]
    if len(plans) > 1:
        sums = [(name, f"{len(planned):,}", totals(planned)) for name, planned in plans.items()]
        body = [(*names, f"{each['forward_passes']:,}", duration(each["hours"])) for *names, each in sums]
        tables.append(Table.of("timing", title, ("experiment", "cells", "forward passes", "time"), body))
    formats.terminal(tables)


def _planned(cell: PlannedCell) -> tuple[str, ...]:
    from unmask.experiments.run import duration

    shown = asdict(cell) | {"seeds": " ".join(map(str, cell.seeds)), "hours": duration(cell.hours)}
    shown |= {"forward_passes": f"{cell.forward_passes:,}"}
    return tuple("–" if value is None else str(value) for name, value in shown.items() if name != "spec")
