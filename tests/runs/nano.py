"""A checkpoint of random numbers that decodes in milliseconds, grids over it, and what two runs have in common."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch

from unmask.models.checkpoints.random_weights import random_folder
from unmask.runs.engine import Local
from unmask.runs.evaluation import evaluate
from unmask.runs.grid import Grid, make_grid
from unmask.runs.settings import Decoding, Placement
from unmask.runs.store import Run

DECODERS = ("low-confidence(steps=4, temperature=0.7)", "ots(beams=2, steps=4)", "vote(n=3)")


def nano(folder: Path) -> str:
    if not folder.exists():
        random_folder(folder, "llada", "nano", dtype=torch.float32)
    return str(folder)


def small_grid(model: str, **changes: Any) -> Grid:
    options: dict[str, Any] = {
        "models": [model],
        "tasks": ["countdown", "mini-gsm(level=2)"],
        "decoders": DECODERS,
        "lengths": [8],
        "limit": 9,
        "device": "cpu",
    }
    options |= changes
    for name, kind in (("decoding", Decoding), ("placement", Placement)):
        given = {field.name: options.pop(field.name) for field in fields(kind) if field.name in options}
        options[name] = kind(**given)
    return make_grid(**options)


def run_here(grid: Grid, out: Path, batch: int | None = None, **more: Any) -> Run:
    return evaluate(replace(grid, placement=replace(grid.placement, batch=batch)), out, Local(), **more)


def lasting(run: Run) -> list[dict[str, Any]]:
    return [record.lasting() for record in run.records]
