"""An experiment's rows and approximate time, computed before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from unmask.core import Decoder, decoder
from unmask.decoders import OrderSearch, TokenSearch
from unmask.errors import UnmaskError
from unmask.experiments.experiment import Experiment
from unmask.experiments.setup import Setup
from unmask.models.inspection import inspect_checkpoint
from unmask.tasks import task
from unmask.tasks.benchmark import Benchmark

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
            rows = resolved.rows(length) * problems * draws
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
    return {"rows": sum(cell.rows for cell in cells), "hours": sum(cell.hours for cell in cells)}


def duration(hours: float) -> str:
    if hours >= 1:
        return f"{hours:,.1f} h"
    return f"{60 * hours:.1f} min" if hours >= 1 / 60 else f"{3600 * hours:.1f} s"
