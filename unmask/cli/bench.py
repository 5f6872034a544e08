"""`unmask bench`: seconds, rows and memory against the plain loop, side by side."""

import json as jsons
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from unmask import api
from unmask.cli import options
from unmask.cli.app import app
from unmask.errors import UnmaskError
from unmask.report import bench as report
from unmask.report import figures, formats
from unmask.runs.bench.bed import Bed
from unmask.runs.bench.bench import Bench
from unmask.runs.bench.contenders import CONTENDERS, usual
from unmask.runs.bench.plan import Plan, Sizes, choose, read_sweep

PROMPT, SHAPE_LENGTH = 160, 256  # of random shapes, where nobody says


@app.command()
def bench(
    shape: Annotated[
        str | None, typer.Option(metavar="NAME", help="Random weights of this shape, such as llada-8b; no files.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="MODEL", help="A model by name; tiny without either.")
    ] = None,
    length: options.Length = None,
    prompt: Annotated[
        int | None, typer.Option(metavar="N", help="Tokens of random prompts; a model is else given Countdown.")
    ] = None,
    block: Annotated[int, typer.Option(metavar="N", help="Masks a block.")] = 32,
    steps: Annotated[int | None, typer.Option(metavar="N", help="In all; half the masks without it.")] = None,
    beams: Annotated[int, typer.Option(metavar="K", help="Rows of the search.")] = 4,
    temperature: Annotated[float, typer.Option(metavar="T", help="Of the search's draws.")] = 0.4,
    problems: Annotated[int, typer.Option("--problems", "-n", metavar="N", help="Decoded together by ours.")] = 1,
    repeat: Annotated[int, typer.Option(metavar="N", help="Measured rounds, after one to warm up.")] = 3,
    sweep: Annotated[
        list[str] | None, typer.Option(metavar="AXIS", help="beams, length or problems, or beams=2,4,8; repeatable.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Measure this contender; repeatable. All without it.")
    ] = None,
    limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Begin nothing after so long.")] = None,
    seed: options.Seed = 0,
    note: Annotated[str, typer.Option(metavar="TEXT", help="Kept with the results.")] = "",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Results as JSON, rewritten after every run.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="A plot, .svg or .png.")] = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    json: options.Json = False,
) -> None:
    """Measure the plain loop and ours in one run, in turns.

    \b
    Examples:
      unmask bench --problems 4 --repeat 1
      unmask bench --shape llada-8b --device cuda --sweep beams --sweep problems=1,16 --out h200.json
      unmask bench --only plain-ots --only ots --plot bench.svg
    """
    if shape and model:
        raise UnmaskError("--shape makes random weights and --model loads a model: choose one of them")
    for path in (out, plot):
        if path is not None:
            api.check_writable(path)
    kind = figures.kind_of(plot) if plot is not None else ""
    sweeps = tuple(map(read_sweep, sweep or ()))
    length, prompt = (length or SHAPE_LENGTH, prompt or PROMPT) if shape else (length or 64, prompt)
    sizes = Sizes(problems, prompt, length, block, steps, beams, temperature)
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    contenders = choose(only or (), tuple(CONTENDERS), usual(torch.device(place)))
    plan = Plan(sizes, contenders, sweeps, repeat, limit=limit, seed=seed)
    bed = Bed.of_shape(shape, place, dtype) if shape else Bed.of_model(api.load(model or options.MODEL, place, dtype))
    found = Bench(plan, bed, Teller(), Saver(out), note)()
    if plot is not None:
        figures.keep(report.draw(found, kind), plot)
    if json:
        print(jsons.dumps(found, ensure_ascii=False))
    else:
        formats.terminal(report.tables(found), formats.console(wide=not sys.stdout.isatty()))


class Teller:
    """Progress: a line a result, on standard error."""

    def __init__(self) -> None:
        self.began = time.monotonic()

    def __call__(self, line: str) -> None:
        print(f"{time.monotonic() - self.began:7.1f} s  {line}", file=sys.stderr, flush=True)


class Saver:
    def __init__(self, path: Path | None):
        self.path = path

    def __call__(self, found: dict[str, Any]) -> None:
        """Whole or not at all: a run that is cut off leaves what it had."""
        if self.path is not None:
            part = self.path.with_suffix(self.path.suffix + ".part")
            part.write_text(jsons.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            part.replace(self.path)
