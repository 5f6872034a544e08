"""`unmask eval`: evaluate a grid."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.boundary import print_json, resumable, typed
from unmask.cli.options import ConfigFile, DumpConfig, one_of, repeatable
from unmask.cli.progress import board
from unmask.runs.engine import make_engine
from unmask.runs.evaluation import evaluate
from unmask.runs.grid import make_grid
from unmask.runs.settings import Decoding, Placement
from unmask.runs.store import RECORDS, Run
from unmask.runs.summary import summarize
from unmask.tasks import Metric, data
from unmask.tasks.sandbox.run import Confinement


@app.command("eval")
@options.expand("decoder", "length", "seed")
def eval_(
    model: Annotated[
        list[str] | None, repeatable("--model", "-m", metavar="MODEL", help="A name, folder or hub id")
    ] = None,
    task: Annotated[
        list[str] | None, repeatable("--task", "-t", metavar="SPEC", help="Such as gsm8k or countdown(level=4)")
    ] = None,
    decoder: Annotated[
        list[str] | None, repeatable("--decoder", "-d", metavar="SPEC", help="Such as ots(beams=4)")
    ] = None,
    out: options.RunFolder = None,
    length: Annotated[
        list[int] | None,
        repeatable("--length", "-l", metavar="N", help="Masks after the prompt; by default the model's own"),
    ] = None,
    seed: Annotated[list[int] | None, repeatable("--seed", "-s", metavar="N", help="0 by default")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="Problems of each task; all by default.")] = None,
    samples: Annotated[int, typer.Option(metavar="N", help="Answers to each problem, for pass@k and votes.")] = 1,
    metric: options.MetricName = "ours",
    data_: options.DataFolder = None,
    prompts: options.Wording = None,
    allow_code: options.AllowCode = False,
    sandbox: options.Sandbox = None,
    engine: options.EngineName = "local",
    workers: options.Workers = None,
    address: options.Address = None,
    retry: options.Retry = False,
    traces: Annotated[bool, typer.Option("--traces", help="Keep a trace of every decoding run.")] = False,
    max_forward_passes: options.MaxForwardPasses = None,
    config: ConfigFile = None,  # type: ignore[assignment]  always given by its callback
    dump: DumpConfig = False,
    *,
    decoding: options.DecodingFields,
    placement: options.PlacementFields,
    json: options.Json = False,
) -> None:
    """Evaluate a grid of models, tasks, decoders, lengths and seeds into a folder, which can be resumed.

    \b
    Examples:
      unmask eval -m tiny -t countdown -d low-confidence -d 'ots(beams=4)' -l 64 --limit 20 --out runs/countdown
      unmask eval -m tiny -t countdown -d low-confidence -l 64 --limit 20 --out runs/countdown --dump-config > run.toml
      unmask eval --config run.toml --limit 40
      unmask eval -m GSAI-ML/LLaDA-8B-Instruct -t gsm8k -d ots -l 256 --engine ray --out runs/gsm8k
    """
    if dump:
        print(config.dump())
        return
    config.require("model", "task", "decoder", "out")
    if data_ is not None:
        data.use(data_)
    grid = make_grid(
        model or (),
        task or (),
        decoder or (),
        length or (),
        seeds=seed or (0,),
        samples=samples,
        limit=limit,
        metric=one_of(Metric, "--metric", metric),
        prompts=prompts,
        allow_code=allow_code,
        sandbox=one_of(Confinement, "--sandbox", sandbox),
        traces=traces,
        decoding=Decoding.from_dict(decoding),
        placement=Placement(**placement),
        here=engine == "local",
        max_forward_passes=max_forward_passes,
    )
    with resumable(partial(_kept, out)), board() as watch:
        run = evaluate(
            grid, out or "", make_engine(engine, workers, address), retry=retry, watch=watch, command=typed()
        )
    print_json(_facts(run)) if json else print(_table(run))


def _kept(folder: Path | None) -> str:
    folder = folder or Path()
    lines = (folder / RECORDS).read_bytes().count(b"\n") if (folder / RECORDS).exists() else 0
    return f"{lines} records are kept in {str(folder)!r}"


def _facts(run: Run) -> dict[str, Any]:
    cells = [
        {
            **cell._asdict(),
            "accuracy": summary.accuracy,
            "standard_error": None if len(summary.scores) < 2 else summary.error,
            "problems": len(summary.scores),
            "records": summary.records,
            "forward_passes": summary.rows / summary.records,
            "failed": summary.failed,
        }
        for cell, summary in summarize(run.records).items()
    ]
    return {"out": str(run.folder), "records": len(run.records), "cells": cells}


def _table(run: Run) -> str:
    lines = []
    for cell, summary in summarize(run.records).items():
        lines.append(f"{cell.model} · {cell.task} · {cell.decoder} · length {cell.length}")
        lines.append(f"  {summary}")
    failed = [record for record in run.records if record.error]
    if failed:
        lines.append(f"{len(failed)} failed, the first ({failed[0].problem}): {failed[0].error}")
    return "\n".join([*lines, f"{len(run.records)} records in {run.folder}"])
