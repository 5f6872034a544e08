"""`unmask train`: train the embedded model from scratch."""

import os
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from unmask.cli.app import app
from unmask.cli.boundary import print_json, resumable
from unmask.cli.progress import heartbeat
from unmask.errors import UnmaskError
from unmask.models.devices import choose_device
from unmask.training import make, recipe

MOST_WORKERS = 1024


@app.command()
def train(
    name: Annotated[str, typer.Argument(help="tiny, or nano, a small one for trying it out")],
    out: Annotated[
        Path, typer.Option(help="folder for state, log, curves and the model; an unfinished training in it is resumed")
    ],
    steps: Annotated[int | None, typer.Option(help="stop after this many further steps")] = None,
    workers: Annotated[
        int | None, typer.Option(help="processes that draw problems; by default all cores but two")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; by default cuda if available")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the log as JSON lines")] = False,
) -> None:
    """Train a model of the LLaDA family on the generated tasks.

    Example: unmask train nano --out runs/nano
    """
    if steps is not None and steps < 1:
        raise UnmaskError(f"--steps {steps} is too few: choose 1 or more")
    chosen = choose_device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if workers is not None and not 0 <= workers <= MOST_WORKERS:
        raise UnmaskError(f"--workers {workers} does not work: choose 0 or more, at most {MOST_WORKERS}")
    workers = max(0, (os.cpu_count() or 1) - 2) if workers is None else workers
    last: dict[str, Any] = {}  # the latest entry of the log

    def report(entry: dict[str, Any]) -> None:
        last.update(entry)
        if as_json:
            print_json(entry)
            return
        right = "".join(f"  {task} {100 * share:.1f}%" for task, share in entry.get("accuracy", {}).items())
        typer.echo(f"step {entry['step']}  loss {entry['loss']:.4f}  {entry['seconds']:.0f} s{right}", err=True)

    with resumable(lambda: f"the state is kept in {str(out)!r}"), heartbeat(lambda: _pulse(last)):
        folder = make(recipe(name), out, chosen, workers=workers, steps=steps, report=report)
    model = str(folder) if folder else None
    if as_json:
        print_json({"model": model})
    else:
        print(model or f"{out}: not finished; run again to resume")


def _pulse(last: dict[str, Any]) -> str:
    return f"training, step {last['step']} at least" if last else "training"
