"""`unmask models` and `unmask train`: inspect a checkpoint, write a random one, or train the embedded model."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from unmask.cli import options
from unmask.cli.boundary import print_answer, print_json, resumable
from unmask.cli.options import option
from unmask.cli.progress import heartbeat
from unmask.errors import UnmaskError, check_at_least, check_between

if TYPE_CHECKING:
    from unmask.models.load import Inspection

MOST_WORKERS = 1024
FAMILY = "Family from `unmask list models`; without --out the new folder."
TRAINING = "Folder for state, log, curves and the model; an unfinished training resumes."
Size = Literal["nano", "tiny", "small", "1b", "8b", "full"]
Dtype = Literal["bfloat16", "float16", "float32", "float64"]


def inspect(
    name: Annotated[str, typer.Argument(metavar="ID|FOLDER", help="Hub id, or folder of a checkpoint.")],
    revision: Annotated[str | None, option("Branch, tag or commit of a hub id.")] = None,
    json: options.Json = False,
) -> None:
    """Describe a checkpoint and the memory it needs; no weight is downloaded or read."""
    from unmask.models.load import inspect_checkpoint

    if not name:
        raise UnmaskError("the model's name is empty: give a hub id or a folder")
    inspection = inspect_checkpoint(name, revision)
    text = "\n".join(f"{key:<12}{value}" for key, value in _lines(inspection))
    print_answer(json, dataclasses.asdict(inspection), text)


def _lines(inspection: Inspection) -> list[tuple[str, str]]:
    from unmask.models.devices import format_bytes

    shape, exact = inspection.shape, ", ".join(inspection.caches["exact"])
    caches = f"{exact}, on by default and bit-identical in float32"
    if not exact:
        caches = f"{', '.join(inspection.caches['approximate'])}, both approximate; none by default"
    heads = f"{shape.heads} heads" + (f" ({shape.kv_heads} for keys)" if shape.kv_heads != shape.heads else "")
    if shape.head is not None:
        heads += f" of width {shape.head}"
    mlp = f"MLP {shape.hidden}"
    if shape.experts is not None:
        mlp += f", {shape.experts.count} experts of {shape.experts.hidden}, {shape.experts.chosen} per position"
    stored = f", {format_bytes(inspection.stored)}" if inspection.stored else ""
    missing = f" ({len(inspection.missing)} missing)" if inspection.missing else ""
    weights, needed = (
        ", ".join(f"{format_bytes(sizes[dtype])} in {dtype}" for dtype in ("bfloat16", "float32"))
        for sizes in (inspection.bytes, inspection.needed)
    )
    return [
        ("name", inspection.name),
        ("family", inspection.family),
        ("shape", f"{shape.layers} layers of width {shape.width}, {heads}, {mlp}"),
        ("attention", "full" if shape.block is None else f"block-causal, blocks of {shape.block}"),
        ("caches", caches),
        ("vocabulary", f"{shape.vocab}"),
        ("context", f"{shape.context} positions; {inspection.length} written by default"),
        ("parameters", f"{inspection.parameters:,}"),
        ("weights", weights),
        ("to run", f"about {needed}"),
        ("mask", f"{inspection.mask_id} {inspection.mask or ''}".strip()),
        ("ends", ", ".join(f"{number} {token}" for number, token in inspection.eos.items())),
        ("template", "yes" if inspection.template else "none: messages are joined as plain text"),
        ("shards", f"{len(inspection.shards)}{stored}{missing}"),
    ]


def random(
    name: Annotated[str, typer.Argument(metavar="FAMILY", help=FAMILY)],
    out: Annotated[Path | None, option("New folder.", metavar="DIR")] = None,
    family: Annotated[str | None, option("Family, when the argument is the folder.")] = None,
    size: Annotated[Size, option("Size of the network; full: the published size.")] = "nano",
    seed: Annotated[int, option("Seed of the random weights.", metavar="N")] = 0,
    dtype: Annotated[Dtype, option("Type of the weights.")] = "bfloat16",
    json: options.Json = False,
) -> None:
    """Write a checkpoint of random numbers in a family's published file format.

    \b
    Examples:
      unmask models random sdar --out my-sdar
      unmask models random llada2 --size tiny --out my-llada2
    """
    from unmask.models.checkpoints.random_weights import random_folder
    from unmask.models.devices import stored_dtype
    from unmask.models.families.family import DEFAULT_FAMILY
    from unmask.models.families.family import family as families
    from unmask.models.load import inspect_checkpoint

    if out is not None and family is not None:
        raise UnmaskError(f"the family is named twice, {name!r} and {family!r}: remove --family")
    target, kind = (Path(name), family or DEFAULT_FAMILY) if out is None else (out, name)
    if out is None and family is None and name in families:
        raise UnmaskError(f"{name!r} is a family: name a new folder with --out, or ./{name} if that is the folder")
    folder = random_folder(target, kind, size, seed=seed, dtype=stored_dtype(dtype))
    inspection = inspect_checkpoint(folder)
    facts = {"folder": str(folder), "parameters": inspection.parameters, "shards": inspection.shards}
    print_answer(
        json, facts, f"{folder}: {inspection.parameters:,} random parameters in {len(inspection.shards)} shards"
    )


def train(
    name: Annotated[str, typer.Argument(help="Recipe: tiny, or nano, a small one for trying it out.")],
    out: Annotated[Path, option(TRAINING, metavar="DIR")],
    steps: Annotated[int | None, option("Stop after N further steps.", metavar="N")] = None,
    workers: Annotated[int | None, option("Processes that draw problems; default: cores minus 2.", metavar="N")] = None,
    device: Annotated[str | None, option("Device; default: cuda if available.", metavar="NAME")] = None,
    json: Annotated[bool, option("Print the log as JSON lines.", "--json")] = False,
) -> None:
    """Train a model of the LLaDA family on the generated tasks.

    \b
    Examples:
      unmask train nano --out runs/nano
    """
    import torch

    from unmask.models.devices import choose_device
    from unmask.training import make, recipe

    check_at_least(1, steps=steps)
    chosen = choose_device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    check_between(0, MOST_WORKERS, workers=workers)
    workers = max(0, (os.cpu_count() or 1) - 2) if workers is None else workers
    last: dict[str, Any] = {}  # the latest entry of the log

    def report(entry: dict[str, Any]) -> None:
        last.update(entry)
        if json:
            print_json(entry)
            return
        right = "".join(f"  {task} {100 * share:.1f}%" for task, share in entry.get("accuracy", {}).items())
        typer.echo(f"step {entry['step']}  loss {entry['loss']:.4f}  {entry['seconds']:.0f} s{right}", err=True)

    pulse = heartbeat(lambda: f"training, last logged step {last['step']}" if last else "training")
    with resumable(lambda: f"the state is saved in {str(out)!r}"), pulse:
        folder = make(recipe(name), out, chosen, workers=workers, steps=steps, report=report)
    text = str(folder) if folder else f"{out}: not finished; run the same command again to resume"
    print_answer(json, {"model": folder and str(folder)}, text)
