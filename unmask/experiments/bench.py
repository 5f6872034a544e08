"""Where an experiment's work is done: the engine, the device, and what a user allowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from unmask.experiments.cells import Part
from unmask.experiments.setting import Setting
from unmask.models import Model, load
from unmask.runs.decoding import Decoding
from unmask.runs.engines import Engine
from unmask.runs.evaluation import Watcher, evaluate
from unmask.runs.grid import Grid, make_grid
from unmask.runs.placement import Placement, Precision
from unmask.tasks import grading, task


@dataclass(frozen=True)
class Bench:
    engine: Engine
    here: bool = True  # models run on this machine
    batch: int | None = None  # problems together; found without it
    memory: float | None = None  # gigabytes that may be in use
    device: str | None = None
    dtype: str | None = None
    precision: Precision = "highest"
    compiled: bool = False
    prompts: str | None = None  # a file with another wording
    allow_code: bool = False
    sandbox: str | None = None
    retry: bool = False
    watch: Watcher | None = None

    def grid(self, setting: Setting, part: Part) -> Grid:
        return make_grid(
            [setting.model],
            [part.task],
            [method.spec for method in part.methods],
            part.lengths,
            seeds=part.seeds,
            samples=part.samples,
            limit=part.limit,
            metric=setting.metric,
            decoding=Decoding(cache=part.cache, early_end=part.early_end),
            placement=Placement(self.device, self.dtype, self.precision, self.compiled, self.batch, self.memory),
            here=self.here,
            **self.allowed(part.task),
        )

    @property
    def place(self) -> str:
        """The device: a GPU where there is one, unless told otherwise."""
        return self.device or ("cuda" if torch.cuda.is_available() else "cpu")

    def load(self, setting: Setting) -> Model:
        return load(setting.model, self.place, self.dtype, compiled=self.compiled)

    def allowed(self, spec: str) -> dict[str, Any]:
        """What the user gave of a task's settings, of those that this task has."""
        known = {field.name for field in fields(task.make(spec))}  # type: ignore[arg-type]
        given = {"prompts": self.prompts, "allow_code": self.allow_code or None, "sandbox": self.sandbox}
        return {key: value for key, value in given.items() if key in known and value is not None}

    def run(self, setting: Setting, parts: Sequence[Part], folder: Path) -> None:
        """What any part would be refused is refused before the first begins."""
        grids = {part.name: self.grid(setting, part) for part in parts}
        for part in parts:
            grading.ready(task.make(grids[part.name].tasks[0]))
        for name, grid in grids.items():
            evaluate(grid, folder / name, self.engine, retry=self.retry, watch=self.watch)
