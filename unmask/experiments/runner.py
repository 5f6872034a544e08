"""How an experiment is run: the engine, the device, and what the user allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from unmask.experiments.methods import Part
from unmask.experiments.setup import Setup
from unmask.models import Model, load
from unmask.runs.decoding import Decoding
from unmask.runs.engines import Engine
from unmask.runs.evaluation import Watcher, evaluate
from unmask.runs.grid import Grid, make_grid
from unmask.runs.placement import Placement, Precision
from unmask.tasks import grading, task


@dataclass(frozen=True)
class Runner:
    engine: Engine
    here: bool = True  # models run on this machine
    batch: int | None = None  # problems per batch; None chooses it
    memory: float | None = None  # gigabytes that may be used
    device: str | None = None
    dtype: str | None = None
    precision: Precision = "highest"
    compiled: bool = False
    prompts: str | None = None  # a file with other prompts
    allow_code: bool = False
    sandbox: str | None = None
    retry: bool = False
    watch: Watcher | None = None

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
            decoding=Decoding(cache=part.cache, early_end=part.early_end),
            placement=Placement(self.device, self.dtype, self.precision, self.compiled, self.batch, self.memory),
            here=self.here,
            **self.allowed(part.task),
        )

    @property
    def place(self) -> str:
        """The device: by default a GPU if there is one."""
        return self.device or ("cuda" if torch.cuda.is_available() else "cpu")

    def load(self, setup: Setup) -> Model:
        return load(setup.model, self.place, self.dtype, compiled=self.compiled)

    def allowed(self, spec: str) -> dict[str, Any]:
        """The user's task settings that this task has."""
        known = {field.name for field in fields(task.make(spec))}  # type: ignore[arg-type]
        given = {"prompts": self.prompts, "allow_code": self.allow_code or None, "sandbox": self.sandbox}
        return {key: value for key, value in given.items() if key in known and value is not None}

    def run(self, setup: Setup, parts: Sequence[Part], folder: Path) -> None:
        """A part that cannot run is refused before the first one starts."""
        grids = {part.name: self.grid(setup, part) for part in parts}
        for part in parts:
            grading.ready(task.make(grids[part.name].tasks[0]))
        for name, grid in grids.items():
            evaluate(grid, folder / name, self.engine, retry=self.retry, watch=self.watch)
