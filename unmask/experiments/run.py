"""Plan an experiment, run it into its folder, and write its results beside its records."""

import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice, product
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch

from unmask.core import Decoder, decoder
from unmask.errors import UnmaskError
from unmask.experiments.experiment import Experiment, Findings
from unmask.experiments.results import MEASURED, Results, begin, read
from unmask.experiments.setup import Method, Part, Setup
from unmask.models import Model
from unmask.models.load import inspect_checkpoint
from unmask.report import formats
from unmask.report.gather import gather, grouped
from unmask.report.run_report import cell_figures
from unmask.report.statistics import FEWEST
from unmask.runs.engine import Engine
from unmask.runs.evaluation import RecordCallback, evaluate
from unmask.runs.files import write_whole
from unmask.runs.generation import Generation
from unmask.runs.grid import Grid, make_grid
from unmask.runs.settings import Decoding, Placement
from unmask.runs.text import EncodedPrompt, read_prompt
from unmask.tasks import Task, grading, task
from unmask.tasks.published.benchmark import Benchmark

PARAMETERS = 8_015_581_184  # of LLaDA-8B, assumed for models that are not on this machine
# Floating-point operations per second: measured on an H200 and on two CPU cores. Small layers do not fill a GPU.
LARGE_ON_GPU, SMALL_ON_GPU, ON_CPU = 4.45e14, 5e13, 1e11
LARGE = 10**9  # parameters


@dataclass(frozen=True)
class Runner:
    """Where the parts of an experiment run, and what the user allows."""

    engine: Engine
    placement: Placement = field(default_factory=Placement)
    here: bool = True  # models run on this machine
    prompts: str | None = None  # a file with other prompts
    allow_code: bool = False  # generated programs may run in the sandbox
    sandbox: str | None = None
    retry: bool = False  # failed records are run again
    watch: RecordCallback | None = None  # called with the records of each batch

    def grid(self, setup: Setup, part: Part) -> Grid:
        return make_grid(
            [setup.model],
            [part.task],
            [method.spec for method in part.methods],
            part.lengths,
            seeds=part.seeds,
            samples=part.samples,
            limit=part.limit,
            metric=setup.metric,
            decoding=Decoding(
                cache=None if part.cache == "none" else part.cache,
                early_end=part.early_end,
                check=(part.check,) if part.check else (),
            ),
            placement=self.placement,
            here=self.here,
            **self.allowed(part.task),
        )

    def allowed(self, spec: str) -> dict[str, Any]:
        """Return the user's task settings that this task has."""
        known = {each.name for each in fields(task.make(spec))}  # type: ignore[arg-type]
        given = {"prompts": self.prompts, "allow_code": self.allow_code or None, "sandbox": self.sandbox}
        return {key: value for key, value in given.items() if key in known and value is not None}

    def task_of(self, part: Part) -> Task:
        """Return the task of a part with the user's settings."""
        return task.make(part.task, **self.allowed(part.task))

    def encoded_prompts(self, model: Model, part: Part, count: int) -> list[EncodedPrompt]:
        """Return the prompts of the first problems of a part."""
        source = self.task_of(part)
        return [read_prompt(model, source.messages(problem)) for problem in islice(source.problems(), count)]

    def generation(self, model: Model, part: Part, method: Method, seed: int = 0) -> Generation:
        """Return what decodes by a method of a part, at its first length."""
        decoding = Decoding(decoder.make(method.spec), part.lengths[0], seed)
        return Generation(model, decoding, key=self.task_of(part).key)

    def run(self, setup: Setup, parts: Sequence[Part], folder: Path) -> None:
        """Evaluate all parts; check that each of them can run before the first one starts."""
        grids = {part.name: self.grid(setup, part) for part in parts}
        tasks = [self.task_of(part) for part in parts]
        benchmarks = [each for each in tasks if isinstance(each, Benchmark)]
        if self.prompts is not None and not benchmarks:
            raise UnmaskError(f"--prompts changes nothing in {parts[0].task}: generated tasks have one wording")
        for each in benchmarks:
            each.chosen_wording()
        for each in tasks:
            grading.ready(each)
        for name, grid in grids.items():
            evaluate(grid, folder / name, self.engine, retry=self.retry, watch=self.watch)


def seconds_of(work: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    work()
    return round(time.perf_counter() - start, 5)


def describe_machine(model: Model, placement: Placement) -> dict[str, Any]:
    """Return the machine and the arithmetic of a measurement, to be stored with it."""
    device, dtype = model.denoiser.device, str(model.denoiser.dtype).removeprefix("torch.")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    here = {"device": device.type, "name": name, "torch": torch.__version__, "threads": torch.get_num_threads()}
    return {"machine": here | {"dtype": dtype}, "precision": placement.precision}


@dataclass(frozen=True)
class PlannedCell:
    """One row of a plan: the settings of a cell and an estimate of its cost."""

    experiment: str
    benchmark: str
    task: str  # the task that is run for the benchmark
    method: str
    spec: str  # the decoder with every default written out
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
    forward_passes: int  # of the whole cell; the maximum, if the number depends on the texts
    hours: float  # of one device


def plan(experiment: Experiment, setup: Setup, device: str, prompts: str | None = None) -> list[PlannedCell]:
    """Return every cell of an experiment with its cost, without running or downloading anything."""
    size, cells = parameters(setup.model), []
    rate = ON_CPU if device == "cpu" else LARGE_ON_GPU if size >= LARGE else SMALL_ON_GPU
    for part in experiment.parts(setup):
        known = setup.sizes.get(part.benchmark)
        problems = min(count for count in (part.limit, known) if count is not None)  # endless tasks have a limit
        wording = Path(prompts).name if prompts and isinstance(task.make(part.task), Benchmark) else "ours"
        draws = len(part.seeds) * part.samples
        for method, length in product(part.methods, part.lengths):
            resolved = decoder.make(method.spec).resolved(length)
            passes = resolved.max_forward_passes(length) * problems * draws
            hours = passes * (setup.prompt + length) * 2 * size / rate / 3600
            names = (experiment.name, part.benchmark, part.task, method.label, decoder.spec(resolved), length)
            rules = (wording, setup.metric, part.seeds)
            cells.append(PlannedCell(*names, *_settings(resolved, length), *rules, problems, draws, passes, hours))
    return cells


def _settings(resolved: Decoder, length: int) -> tuple[int, float, int | None, int | None, int]:
    """Return K, τ, block, steps and n; a vote has those of the decoder inside it."""
    inner = getattr(resolved, "inner", resolved)
    beams, temperature = getattr(inner, "beams", 1), getattr(inner, "temperature", 0.0)
    one_per_step = length if hasattr(inner, "beams") else None  # order search and token search have no setting for it
    steps = getattr(inner, "steps", None) or one_per_step
    return beams, temperature, getattr(inner, "block", None), steps, getattr(resolved, "n", 1)


def parameters(model: str) -> int:
    """Return the number of parameters of a model; nothing is downloaded for an estimate."""
    try:
        return PARAMETERS if "/LLaDA" in model else inspect_checkpoint(model).parameters
    except UnmaskError:
        return PARAMETERS


def totals(cells: Sequence[PlannedCell]) -> dict[str, int | float]:
    return {"forward_passes": sum(cell.forward_passes for cell in cells), "hours": sum(cell.hours for cell in cells)}


def duration(hours: float) -> str:
    if hours >= 1:
        return f"{hours:,.1f} h"
    return f"{60 * hours:.1f} min" if hours >= 1 / 60 else f"{3600 * hours:.1f} s"


def reproduce(experiment: Experiment, setup: Setup, out: Path, runner: Runner, command: str) -> Results:
    """Run an experiment, or resume it where it stopped, and return its results."""
    parts = experiment.parts(setup)
    if not parts:
        raise UnmaskError(f"{experiment.name} has none of the benchmarks {', '.join(setup.benchmarks)}")
    begin(out, Results(experiment.name, command, setup, parts))
    if experiment.records:
        runner.run(setup, parts, out)
    if experiment.measure and not (out / MEASURED).exists():
        torch.set_float32_matmul_precision(runner.placement.precision)
        measured = experiment.measure(runner, setup)
        write_whole(out / MEASURED, json.dumps(measured, ensure_ascii=False, allow_nan=False) + "\n")
    return read(out)


def noted(findings: Findings, results: Results) -> Findings:
    """Return the findings with a note below every table, if there are too few problems to decide anything."""
    most = max((part.limit or FEWEST for part in results.parts), default=FEWEST)
    if most >= FEWEST:
        return findings
    note = f"n={most} at most: too few problems to decide anything."
    return replace(findings, tables=[replace(table, notes=(*table.notes, note)) for table in findings.tables])


def write_results(folder: Path, experiment: Experiment, results: Results, findings: Findings) -> dict[str, Any]:
    """Write results.md, cells.csv, verdicts.json and the figures; return the same as one JSON object."""
    claims, figures = [claim.json(experiment.source) for claim in findings.claims], cells(results)
    write_whole(folder / "results.md", markdown(experiment, findings))
    write_whole(folder / "verdicts.json", json.dumps(claims, ensure_ascii=False, indent=1))
    if results.runs:
        write_whole(folder / "cells.csv", formats.comma_separated(figures))
    for name, image in findings.images("svg", "png").items():
        write_whole(folder / name, image)
    head = {"name": experiment.name, "source": experiment.source, "question": experiment.question, "out": str(folder)}
    return head | {"cells": figures, "measured": results.measured, "verdicts": claims}


def cells(results: Results) -> list[dict[str, Any]]:
    """Return the figures of every cell; the label of an approximate run says how it is approximate."""
    recorded = (part for part in results.parts if part.name in results.runs)
    return [
        cell | {"decoder": " + ".join(filter(None, (cell["decoder"], approximation)))}
        for approximation, parts in grouped(recorded, attrgetter("approximate")).items()
        for cell in cell_figures(gather(results.runs[part.name] for part in parts))
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
