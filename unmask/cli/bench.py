"""`unmask bench`: seconds, rows and memory of each decoder beside the published loops."""

import json as jsons
import sys
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from unmask import api
from unmask.bench import display
from unmask.bench.cases import Plan, Sizes, read_sweep
from unmask.bench.contenders import choose
from unmask.bench.runner import Runner
from unmask.bench.subject import Subject
from unmask.cli import options
from unmask.cli.app import app
from unmask.errors import UnmaskError
from unmask.report import figures, formats
from unmask.runs.store import write_whole

PROMPT, SHAPE_LENGTH, LENGTH = 160, 256, 64  # defaults: the first two for random weights, the last for models


@app.command()
def bench(
    shape: Annotated[
        str | None, typer.Option(metavar="NAME", help="Random weights of this shape, such as llada-8b; needs no files.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="MODEL", help="A model by name. Default: tiny.")
    ] = None,
    length: options.Length = None,
    prompt: Annotated[
        int | None,
        typer.Option(metavar="N", help="Tokens of random prompts. Default: Countdown problems, 160 for a shape."),
    ] = None,
    block: Annotated[int, typer.Option(metavar="N", help="Masks per block.")] = 32,
    steps: Annotated[int | None, typer.Option(metavar="N", help="Steps in total. Default: half the masks.")] = None,
    beams: Annotated[int, typer.Option(metavar="K", help="Rows of the search.")] = 4,
    temperature: Annotated[float, typer.Option(metavar="T", help="Temperature of the search's draws.")] = 0.4,
    problems: Annotated[
        int, typer.Option("--problems", "-n", metavar="N", help="Problems; the published loops take them one by one.")
    ] = 1,
    repeat: Annotated[int, typer.Option(metavar="N", help="Measured rounds, after a warm-up.")] = 3,
    sweep: Annotated[
        list[str] | None, typer.Option(metavar="AXIS", help="beams, length or problems, or beams=2,4,8; repeatable.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Measure only this contender; repeatable.")
    ] = None,
    limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Start no run after this many seconds.")
    ] = None,
    seed: options.Seed = 0,
    note: Annotated[str, typer.Option(metavar="TEXT", help="A remark kept with the results.")] = "",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the results as JSON, again after every run.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a plot, .svg or .png.")] = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    json: options.Json = False,
) -> None:
    """Measure the published loops and this package's decoders in turn, on the same weights and prompts.

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
    length, prompt = (length or SHAPE_LENGTH, prompt or PROMPT) if shape else (length or LENGTH, prompt)
    sizes = Sizes(problems, prompt, length, block, steps, beams, temperature)
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    contenders = choose(only or (), torch.device(place))
    plan = Plan(sizes, contenders, sweeps, repeat, limit=limit, seed=seed)
    if shape:
        subject = Subject.of_shape(shape, place, dtype)
    else:
        subject = Subject.of_model(api.load(model or options.MODEL, place, dtype))
    results = Runner(plan, subject, partial(_show, time.monotonic()), partial(_save, out), note).run()
    if plot is not None:
        figures.keep(display.draw(results, kind), plot)
    if json:
        print(jsons.dumps(results, ensure_ascii=False))
    else:
        formats.terminal(display.tables(results), formats.console(wide=not sys.stdout.isatty()))


def _show(began: float, line: str) -> None:
    print(f"{time.monotonic() - began:7.1f} s  {line}", file=sys.stderr, flush=True)


def _save(path: Path | None, results: dict[str, Any]) -> None:
    if path is not None:
        write_whole(path, jsons.dumps(results, indent=1, ensure_ascii=False) + "\n")
