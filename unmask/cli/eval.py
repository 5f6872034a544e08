"""`unmask eval`: a run."""

import json as jsons
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.options import one_of
from unmask.cli.progress import board
from unmask.errors import UnmaskError
from unmask.runs.engines import make_engine
from unmask.runs.evaluation import evaluate
from unmask.runs.grid import make_grid
from unmask.runs.job import Precision
from unmask.runs.standing import standings
from unmask.runs.store import Run
from unmask.tasks import Metric, data
from unmask.tasks.sandbox import Confinement


def _many(*flags: str, metavar: str, help: str) -> Any:
    return typer.Option(*flags, metavar=metavar, help=help + "; repeatable.")


@app.command("eval")
def eval_(
    model: Annotated[list[str], _many("--model", "-m", metavar="MODEL", help="A name, folder or hub id")],
    task: Annotated[list[str], _many("--task", "-t", metavar="SPEC", help="Such as gsm8k or countdown(level=4)")],
    decoder: Annotated[list[str], _many("--decoder", "-d", metavar="SPEC", help="Such as ots(beams=4)")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="The run's folder; goes on where it stopped.")
    ],
    length: Annotated[list[int] | None, _many("--length", "-l", metavar="N", help="Masks after the prompt")] = None,
    seed: Annotated[list[int] | None, _many("--seed", "-s", metavar="N", help="0 without it")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="Problems of each task; all without it.")] = None,
    samples: Annotated[int, typer.Option(metavar="N", help="Answers to each problem, for pass@k and votes.")] = 1,
    metric: Annotated[str, typer.Option(help="ours, or d1 for figures that compare with published ones.")] = "ours",
    data_: Annotated[str | None, typer.Option("--data", metavar="DIR", help="Holds the benchmark files.")] = None,
    prompts: Annotated[str | None, typer.Option(metavar="FILE", help="A JSON file with another wording.")] = None,
    allow_code: Annotated[bool, typer.Option("--allow-code", help="Run programs that a model wrote.")] = False,
    sandbox: Annotated[str | None, typer.Option(help="namespaces, or rlimits to accept less.")] = None,
    engine: Annotated[str, typer.Option(help="local: this process; ray: workers on one or many machines.")] = "local",
    workers: Annotated[int | None, typer.Option(metavar="N", help="Ray's; one a GPU or core without it.")] = None,
    address: Annotated[str | None, typer.Option(metavar="A", help="Of a Ray cluster; started here without it.")] = None,
    batch: Annotated[int | None, typer.Option(metavar="N", help="Problems together; found without it.")] = None,
    memory: Annotated[
        float | None, typer.Option(metavar="GB", help="That may be in use; most of what is free.")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Try problems again whose records are failures.")] = False,
    traces: Annotated[bool, typer.Option("--traces", help="Keep a trace of every decoding.")] = False,
    guidance: options.Guidance = 0.0,
    suppress: options.Suppress = False,
    early_end: options.EarlyEnd = False,
    cache: options.Cache = "none",
    stop: options.Stop = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    precision: options.Precision = "highest",
    compiled: options.Compile = False,
    json: options.Json = False,
) -> None:
    """Evaluate a grid of models, tasks, decoders, lengths and seeds into a folder, which can be resumed.

    \b
    Examples:
      unmask eval -m tiny -t countdown -d low-confidence -d 'ots(beams=4)' -l 64 --limit 20 --out runs/countdown
      unmask eval -m GSAI-ML/LLaDA-8B-Instruct -t gsm8k -d ots -l 256 --engine ray --out runs/gsm8k
    """
    if data_ is not None:
        data.use(data_)
    if memory is not None and not memory > 0:
        raise UnmaskError(f"--memory {memory} does not work: give gigabytes above 0")
    made = make_engine(engine, workers, address)
    asked: dict[str, Any] = {"seeds": seed or (0,), "samples": samples, "limit": limit}
    asked |= {"prompts": prompts, "metric": one_of(Metric, "--metric", metric)}
    asked |= {"allow_code": allow_code, "sandbox": one_of(Confinement, "--sandbox", sandbox)}
    asked |= {"guidance": guidance, "suppress": suppress, "early_end": early_end, "stop": tuple(stop or ())}
    asked |= {
        "cache": cache,
        "compiled": compiled,
        "precision": one_of(Precision, "--precision", precision),
    }
    asked |= {"traces": traces, "device": device, "dtype": dtype, "here": engine == "local"}
    grid = make_grid(model, task, decoder, length or (), **asked)
    budget = None if memory is None else int(memory * 10**9)
    with board() as watch:
        run = evaluate(grid, out, made, batch=batch, memory=budget, retry=retry, watch=watch)
    print(jsons.dumps(_facts(run), ensure_ascii=False) if json else _table(run))


def _facts(run: Run) -> dict[str, Any]:
    cells = [
        {
            **cell._asdict(),
            "accuracy": standing.accuracy,
            "standard_error": None if len(standing.scores) < 2 else standing.error,
            "problems": len(standing.scores),
            "records": standing.records,
            "rows": standing.rows / standing.records,
            "failed": standing.failed,
        }
        for cell, standing in standings(run.records).items()
    ]
    return {"out": str(run.folder), "records": len(run.records), "cells": cells}


def _table(run: Run) -> str:
    lines = []
    for cell, standing in standings(run.records).items():
        lines.append(f"{cell.model} · {cell.task} · {cell.decoder} · length {cell.length}")
        lines.append(f"  {standing.said()}")
    failed = [record for record in run.records if record.error]
    if failed:
        lines.append(f"{len(failed)} failed, the first ({failed[0].problem}): {failed[0].error}")
    return "\n".join([*lines, f"{len(run.records)} records in {run.folder}"])
