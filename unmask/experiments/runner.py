"""How an experiment is run: the engine, the device, and what the user allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError
from unmask.experiments.methods import Part
from unmask.experiments.setup import Setup
from unmask.runs.engine import Engine
from unmask.runs.evaluation import RecordCallback, evaluate
from unmask.runs.grid import Grid, make_grid
from unmask.runs.settings import Decoding, Placement
from unmask.tasks import grading, task
from unmask.tasks.published.benchmark import Benchmark


@dataclass(frozen=True)
class Runner:
    engine: Engine
    placement: Placement = field(default_factory=Placement)
    here: bool = True  # models run on this machine
    prompts: str | None = None  # a file with other prompts
    allow_code: bool = False
    sandbox: str | None = None
    retry: bool = False
    watch: RecordCallback | None = None

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
            decoding=Decoding(cache=None if part.cache == "none" else part.cache, early_end=part.early_end),
            placement=self.placement,
            here=self.here,
            **self.allowed(part.task),
        )

    def allowed(self, spec: str) -> dict[str, Any]:
        """The user's task settings that this task has."""
        known = {each.name for each in fields(task.make(spec))}  # type: ignore[arg-type]
        given = {"prompts": self.prompts, "allow_code": self.allow_code or None, "sandbox": self.sandbox}
        return {key: value for key, value in given.items() if key in known and value is not None}

    def run(self, setup: Setup, parts: Sequence[Part], folder: Path) -> None:
        """A part that cannot run is refused before the first one starts."""
        grids = {part.name: self.grid(setup, part) for part in parts}
        tasks = [task.make(grids[part.name].tasks[0]) for part in parts]
        benchmarks = [each for each in tasks if isinstance(each, Benchmark)]
        if self.prompts is not None and not benchmarks:
            raise UnmaskError(f"--prompts changes nothing in {parts[0].task}: generated tasks have one wording")
        for each in benchmarks:
            each.chosen_wording()
        for each in tasks:
            grading.ready(each)
        for name, grid in grids.items():
            evaluate(grid, folder / name, self.engine, retry=self.retry, watch=self.watch)
