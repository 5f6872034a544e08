"""Invented records of experiments: each method is right as often as a test says."""

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from unmask.core import decoder
from unmask.experiments import find
from unmask.experiments.results import Results
from unmask.experiments.setup import TINY, Method, Part, Setup
from unmask.runs.record import Counts, Measured, Record
from unmask.runs.store import Run
from unmask.tasks import task

HEAD: dict[str, Any] = {
    "format": 1,
    "machine": {"gpu": None, "platform": "a machine", "torch": "2"},
    "spec": {"device": "cpu", "dtype": "float32", "precision": "highest", "models": ["tiny"]},
}


def small(**changes: Any) -> Setup:
    return replace(TINY, seeds=(0, 1), samples=8, limit=120, few=120, **changes)


def results(name: str, skill: Mapping[str, float], setup: Setup | None = None, problems: int = 120) -> Results:
    """A method that is not named is right half of the time; scores are 1 or 0."""
    setup = setup or small()
    parts = find(name).parts(setup)
    runs = {part.name: run(part, skill, problems) for part in parts}
    return Results(name, f"unmask reproduce {name}", setup, parts, runs)


def run(part: Part, skill: Mapping[str, float], problems: int) -> Run:
    records = [
        record(part, method, length, problem, seed, sample, skill.get(method.name, 0.5))
        for method in part.methods
        for length in part.lengths
        for problem in range(min(problems, part.limit or problems))
        for seed in part.seeds
        for sample in range(part.samples)
    ]
    return Run(Path(part.name), HEAD, sorted(records, key=lambda record: record.name))


@cache
def written_out(spec: str, length: int) -> tuple[str, int]:
    resolved = decoder.make(spec).resolved(length)
    return decoder.spec(resolved), resolved.max_forward_passes(length)


@cache
def task_spec(name: str) -> str:
    return task.spec(task.make(name))


def record(part: Part, method: Method, length: int, problem: int, seed: int, sample: int, skill: float) -> Record:
    spec, rows = written_out(method.spec, length)
    name = ascii((part.benchmark, method.name, length, problem, seed, sample))
    right = random.Random(name).random() < skill
    answer = "right" if right else f"wrong {random.Random(name).randrange(5)}"
    return Record(
        model="tiny",
        task=task_spec(part.task),
        task_version=1,
        decoder=spec,
        length=length,
        seed=seed,
        sample=sample,
        problem=f"{part.benchmark}-{problem}",
        prompt="a prompt",
        text=f"a text that ends with {answer}",
        answer=answer,
        key=answer,
        right=right,
        score=float(right),
        likelihood=-1.5,
        cost=Counts(rows, rows, 100),
        error=None,
        measured=Measured(3, 0.25, 7, "now", "here:1", 2),
    )
