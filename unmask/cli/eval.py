"""`unmask eval`, `unmask grade` and `unmask lm-eval`: evaluate a grid, grade given outputs, run a harness."""

from __future__ import annotations

import io
import json as jsons
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unmask.cli import options
from unmask.cli.boundary import print_answer, read_text, resumable, typed
from unmask.cli.progress import board, cell_text, counting
from unmask.errors import UnmaskError

if TYPE_CHECKING:
    from unmask.runs.store import Run


@dataclass(frozen=True)
class GridOptions:
    """The cells of a grid, and the folder of its run."""

    model: list[str]  # name, folder or hub id
    task: list[str]  # task, such as gsm8k or countdown(level=4)
    decoder: list[str]  # decoder, such as ots(beams=4)
    out: Path  # run folder; an unfinished run resumes
    length: list[int] = field(default_factory=list)  # masks after the prompt; default: the model's own
    seed: list[int] = field(default_factory=lambda: [0])  # seed of all random numbers; default: 0
    limit: int | None = None  # problems per task; default: all
    samples: int = 1  # answers per problem, for pass@k and votes
    traces: bool = False  # keep a trace of every decoding run
    max_forward_passes: int | None = None  # largest number of forward passes per problem


@options.expand(max_forward_passes=options.Own(f"{options.MAX_FORWARD_PASSES:,}"))
def eval_(
    *,
    cells: Annotated[dict[str, Any], (__name__, "GridOptions")],
    tasks: options.TaskFields,
    work: options.EngineFields,
    decoding: options.DecodingFields,
    placement: options.PlacementFields,
    json: options.Json = False,
) -> None:
    """Evaluate a grid of models, tasks, decoders, lengths and seeds into a folder, which can be resumed.

    \b
    Examples:
      unmask eval -m tiny -t countdown -d low-confidence -d 'ots(beams=4)' -l 64 --limit 20 --out runs/countdown
      unmask eval -m GSAI-ML/LLaDA-8B-Instruct -t gsm8k -d ots -l 256 --engine ray --out runs/gsm8k
    """
    for name in ("model", "task", "decoder", "out"):
        if not cells.get(name):
            raise UnmaskError(f"Missing option '--{name}'")
    from unmask.runs.evaluation import evaluate
    from unmask.runs.grid import make_grid
    from unmask.runs.settings import Decoding, Placement

    given, graded, chosen = GridOptions(**cells), options.TaskOptions(**tasks), options.EngineOptions(**work)
    counts = {name: getattr(given, name) for name in ("limit", "samples", "traces", "max_forward_passes")}
    how = {"decoding": Decoding.from_dict(decoding), "placement": Placement(**placement), "here": chosen.local}
    how |= {"seeds": given.seed, "metric": graded.metric, **counts, **graded.settings()}
    grid = make_grid(given.model, given.task, given.decoder, given.length, **how)
    with resumable(lambda: _saved(given.out)), board() as watch:
        run = evaluate(grid, given.out, chosen.make(), retry=chosen.retry, watch=watch, command=typed())
    print_answer(json, _facts(run), _table(run))


def _saved(folder: Path) -> str:
    from unmask.runs.store import RECORDS

    lines = (folder / RECORDS).read_bytes().count(b"\n") if (folder / RECORDS).exists() else 0
    return f"{lines} records are saved in {str(folder)!r}"


def _facts(run: Run) -> dict[str, Any]:
    from unmask.report.gather import grouped, result_of

    cells = []
    for cell, records in grouped(run.records, attrgetter("cell")).items():
        result = result_of(records)
        score = result.estimate("score")
        figures = {"accuracy": 100 * (score.value or 0.0), "standard_error": score.error and 100 * score.error}
        figures |= {"problems": score.n, "records": len(records)}
        passes = fmean(record.cost.forward_passes for record in records)
        cells.append({**cell._asdict(), **figures, "forward_passes": passes, "failed": result.failed})
    return {"out": str(run.folder), "records": len(run.records), "cells": cells}


def _table(run: Run) -> str:
    from unmask.report.gather import grouped

    lines = []
    for cell, records in grouped(run.records, attrgetter("cell")).items():
        lines.append(f"{cell.model} · {cell.task} · {cell.decoder} · length {cell.length}\n  {cell_text(records)}")
    if failed := [record for record in run.records if record.error]:
        lines.append(f"{len(failed)} failed; the first ({failed[0].problem}): {failed[0].error}")
    return "\n".join([*lines, f"{len(run.records)} records in {run.folder}"])


@options.expand("prompts")
def grade(
    file: Annotated[str, typer.Argument(help='JSON lines of {"id" or "question", "output"}; - for standard input.')],
    spec: Annotated[str, typer.Option("--task", "-t", help="Task, such as gsm8k or mbpp(subset=sanitized).")],
    *,
    tasks: options.TaskFields,
    json: options.Json = False,
) -> None:
    """Grade a file of outputs and print the accuracy."""
    from unmask.tasks import grading, task
    from unmask.tasks.task import configure

    graded = options.TaskOptions(**tasks)
    (source,) = configure([spec], **graded.settings())
    with counting("graded") as progress:
        lines = io.StringIO(read_text(file, "the file", errors="replace"))
        report = grading.grade(source, lines, graded.metric, progress)
    n, accuracy = len(report.grades), report.accuracy
    facts = {"task": task.spec(source), "version": source.version, "metric": graded.metric, "n": n}
    facts |= {"right": report.right, "accuracy": accuracy, "results": report.results()}
    print_answer(json, facts, f"right {report.right} of {n}\naccuracy {accuracy:.2f} (n={n})")


HARNESS_COMMANDS = ("ls", "validate")  # commands of the harness that need no model


@options.expand("memory", length=options.Own("the task's, else the model's own"))
def lm_eval(
    context: typer.Context,
    model: options.ModelName = options.MODEL,
    *,
    decoding: options.DecodingFields,
    scorer: options.ScorerName = options.SCORER,
    block: options.ScoreBlock = None,
    placement: options.PlacementFields,
) -> None:
    """Run lm-evaluation-harness on a model of this package (pip install 'unmask[lm-eval]').

    Options that are not listed here are those of the harness's own `run`, such as --tasks, --limit, --num_fewshot,
    --apply_chat_template, --output_path and --use_cache.

    \b
    Examples:
      unmask lm-eval -m tiny -d 'ots(beams=2)' -l 64 --tasks gsm8k --limit 20 --apply_chat_template
      unmask lm-eval -m tiny --scorer 'elbo(n=128)' --tasks arc_easy --output_path results
      unmask lm-eval ls tasks
    """
    from unmask.integrations import lm_eval as harness  # an optional extra

    words = list(context.args)
    if words[:1] and words[0] in HARNESS_COMMANDS:
        harness.main(words)
        return
    named = {"pretrained": model, **decoding, "scorer": scorer, "block": block, **placement}
    given = {name: value for name, value in named.items() if value is not None}
    rest = words[words[:1] == ["run"] :]
    harness.main(["run", "--model", "unmask", "--model_args", jsons.dumps(given), *rest])
