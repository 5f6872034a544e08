"""What an experiment will ask of a model, and about how long that takes: counted before anything runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from unmask.core import decoder
from unmask.errors import UnmaskError
from unmask.experiments.cells import Part
from unmask.experiments.experiment import Experiment
from unmask.experiments.setting import Setting
from unmask.models.inspection import inspect_checkpoint

PARAMETERS = 8_015_581_184  # of LLaDA-8B, assumed of models that are not here to be looked at
# Floating-point operations a second. On an H200 a row of 416 positions of LLaDA-8B took 15 ms in a batch (bfloat16,
# docs/cluster.md); layers as small as the embedded model's do not fill it. A CPU of two cores does about 5e10.
LARGE_ON_GPU, SMALL_ON_GPU, ON_CPU = 4.45e14, 5e13, 5e10
LARGE = 10**9  # parameters


@dataclass(frozen=True)
class Line:
    """One cell before it runs."""

    experiment: str
    benchmark: str
    method: str
    spec: str
    length: int
    problems: int
    draws: int  # seeds times samples, of each problem
    rows: int  # asked of the network in all; the most, where that depends on the texts
    hours: float  # of one device


def plan(experiment: Experiment, setting: Setting, device: str) -> list[Line]:
    return [line for part in experiment.parts(setting) for line in _lines(experiment, setting, part, device)]


def _lines(experiment: Experiment, setting: Setting, part: Part, device: str) -> Iterable[Line]:
    rate = rate_of(device, parameters(setting.model))
    known = setting.sizes.get(part.benchmark)
    problems = min(size for size in (part.limit, known) if size is not None)  # endless tasks have a limit
    draws = len(part.seeds) * part.samples
    for method in part.methods:
        for length in part.lengths:
            rows = decoder.make(method.spec).resolved(length).rows(length) * problems * draws
            seconds = rows * (setting.prompt + length) * 2 * parameters(setting.model) / rate
            yield Line(
                experiment.name,
                part.benchmark,
                method.label,
                method.spec,
                length,
                problems,
                draws,
                rows,
                seconds / 3600,
            )


def parameters(model: str) -> int:
    """Of a model that is here; a hub id is not fetched for an estimate."""
    try:
        return PARAMETERS if "/LLaDA" in model else inspect_checkpoint(model).parameters
    except UnmaskError:
        return PARAMETERS


def rate_of(device: str, size: int) -> float:
    if device == "cpu":
        return ON_CPU
    return LARGE_ON_GPU if size >= LARGE else SMALL_ON_GPU


def totals(lines: Iterable[Line]) -> dict[str, int | float]:
    some = list(lines)
    return {"rows": sum(line.rows for line in some), "hours": sum(line.hours for line in some)}


def as_json(lines: Iterable[Line]) -> list[dict[str, Any]]:
    return [asdict(line) for line in lines]


def duration(hours: float) -> str:
    if hours >= 1:
        return f"{hours:,.1f} h"
    return f"{60 * hours:.1f} min" if hours >= 1 / 60 else f"{3600 * hours:.1f} s"
