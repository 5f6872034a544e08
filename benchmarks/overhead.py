"""What the run line adds to bare decoding: posing, batching, grading, writing to the disk and reading back.

    python benchmarks/overhead.py --model tiny --decoder ots --length 64 --limit 32 --batch 8

One JSON line a round: seconds in the decoding itself, seconds in all the rest, and their ratio. The model is loaded
before the clock starts. `bare` is the same problems decoded with nothing around them, for comparison; on a machine that
others share it wanders by more than the overhead, which is why the line's own share is timed inside one run.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from unmask.models import Model
from unmask.runs.engines import Local
from unmask.runs.evaluation import evaluate
from unmask.runs.generation import Generation, in_batches
from unmask.runs.grid import Grid, make_grid
from unmask.runs.placement import Placement
from unmask.runs.prompt import read_prompt
from unmask.tasks import task


class Timed:
    """A function and the seconds spent in it."""

    def __init__(self, inner):
        self.inner, self.seconds = inner, 0.0

    def __call__(self, *words, **more):
        began = time.perf_counter()
        try:
            return self.inner(*words, **more)
        finally:
            self.seconds += time.perf_counter() - began


def inside(grid: Grid) -> tuple[float, float]:
    """Seconds of one run: in the decoder, and in all."""
    whole = Generation.outputs
    timed = Timed(whole)
    Generation.outputs = lambda self, *words, **more: timed(self, *words, **more)
    try:
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            evaluate(grid, Path(folder) / "run", Local())
            return timed.seconds, time.perf_counter() - began
    finally:
        Generation.outputs = whole


def bare(grid: Grid, model: Model, batch: int) -> float:
    cell = grid.cells()[0]
    made = task.make(cell.task)
    prompts = [read_prompt(model, made.messages(problem)) for problem in grid.problems()[cell.task]]
    generation = Generation(model, grid.decoding_of(cell, 0), key=made.key)
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
    asked = parser.parse_args()
    placement = Placement(batch=asked.batch)
    grid = make_grid(
        [asked.model], [asked.task], [asked.decoder], [asked.length], limit=asked.limit, placement=placement
    )
    model = grid.placement.load(grid.models[0])
    Placement.load = lambda *_, **__: model  # loaded once, outside the clock
    for _ in range(asked.rounds):
        decoding, total = inside(grid)
        said = {"decoding": decoding, "rest": total - decoding, "overhead": (total - decoding) / decoding}
        print(json.dumps(said | {"bare": bare(grid, model, asked.batch)}), flush=True)


if __name__ == "__main__":
    main()
