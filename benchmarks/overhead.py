"""Measure what an evaluation run adds to decoding: prompts, batching, grading, writing records and reading them.

    python benchmarks/overhead.py --model tiny --decoder ots --length 64 --limit 32 --batch 8

One JSON line is printed per round: seconds spent decoding, seconds spent on the rest, and their ratio. The model is
loaded before the clock starts. `bare` is the time to decode the same problems outside a run, for comparison. On a
shared machine it varies by more than the overhead, so the overhead is timed inside a single run.
"""

import argparse
import json
import tempfile
import time
from itertools import islice
from pathlib import Path

from unmask.models import Model
from unmask.runs.engine import Local
from unmask.runs.evaluation import evaluate
from unmask.runs.generation import Generation, in_batches
from unmask.runs.grid import Grid, make_grid
from unmask.runs.settings import Placement
from unmask.runs.text import read_prompt
from unmask.tasks import task


class Stopwatch:
    """Calls a function and sums the seconds spent in it."""

    def __init__(self, inner):
        self.inner, self.seconds = inner, 0.0

    def __call__(self, *args, **kwargs):
        began = time.perf_counter()
        try:
            return self.inner(*args, **kwargs)
        finally:
            self.seconds += time.perf_counter() - began


def inside(grid: Grid) -> tuple[float, float]:
    """Return the seconds that one run spends decoding, and in total."""
    whole = Generation.outputs
    timed = Stopwatch(whole)
    Generation.outputs = lambda self, *args, **kwargs: timed(self, *args, **kwargs)
    try:
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            evaluate(grid, Path(folder) / "run", Local())
            return timed.seconds, time.perf_counter() - began
    finally:
        Generation.outputs = whole


def bare(grid: Grid, model: Model, batch: int) -> float:
    cell = grid.cells[0]
    family = task.make(cell.task)
    prompts = [read_prompt(model, family.messages(problem)) for problem in islice(family.problems(), grid.limit)]
    generation = Generation(model, grid.decoding_of(cell, 0), key=family.key)
    began = time.perf_counter()
    in_batches(generation, prompts, batch)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--task", default="countdown")
    parser.add_argument("--decoder", default="ots")
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--limit", type=int, default=32)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    placement = Placement(batch=args.batch)
    grid = make_grid([args.model], [args.task], [args.decoder], [args.length], limit=args.limit, placement=placement)
    model = grid.placement.load(grid.models[0])
    Placement.load = lambda *_, **__: model  # loaded once, outside the clock
    for _ in range(args.rounds):
        decoding, total = inside(grid)
        rest = total - decoding
        seconds = {"decoding": decoding, "rest": rest, "overhead": rest / decoding}
        print(json.dumps(seconds | {"bare": bare(grid, model, args.batch)}), flush=True)


if __name__ == "__main__":
    main()
