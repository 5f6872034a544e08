"""`unmask models`: look into a checkpoint, or make one of random numbers."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from unmask.cli.app import app
from unmask.models.describe import Description, describe
from unmask.models.memory import said, stored_dtype
from unmask.models.random import SIZES, random_folder

models = typer.Typer(name="models", help="Look into checkpoints, or make random ones.", no_args_is_help=True)
app.add_typer(models)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@models.command()
def inspect(
    name: Annotated[str, typer.Argument(metavar="ID|FOLDER", help="A hub id, or the folder of a checkpoint.")],
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of a hub id.")] = None,
    as_json: Json = False,
) -> None:
    """Say what a checkpoint is and what memory it needs; no weight is fetched or read."""
    found = describe(name, revision)
    if as_json:
        print(json.dumps({**dataclasses.asdict(found), "shape": dataclasses.asdict(found.shape)}, ensure_ascii=False))
        return
    for key, value in _lines(found):
        print(f"{key:<12}{value}")


def _lines(found: Description) -> list[tuple[str, str]]:
    shape = found.shape
    heads = f"{shape.heads} heads" + (f" ({shape.kv_heads} for keys)" if shape.kv_heads != shape.heads else "")
    sizes = ", ".join(f"{said(found.bytes[dtype])} in {dtype}" for dtype in ("bfloat16", "float32"))
    room = ", ".join(f"{said(found.needed[dtype])} in {dtype}" for dtype in ("bfloat16", "float32"))
    there = f"{len(found.shards)}" + (f", {said(found.stored)}" if found.stored else "")
    gone = f" ({len(found.missing)} not here)" if found.missing else ""
    return [
        ("name", found.name),
        ("family", found.family),
        ("shape", f"{shape.layers} layers of width {shape.width}, {heads}, MLP {shape.hidden}"),
        ("vocabulary", f"{shape.vocab}"),
        ("context", f"{shape.context} positions; {found.length} written by default"),
        ("parameters", f"{found.parameters:,}"),
        ("weights", sizes),
        ("to run", f"about {room}"),
        ("mask", f"{found.mask_id} {found.mask or ''}".strip()),
        ("ends", ", ".join(f"{number} {token}" for number, token in found.eos.items())),
        ("template", "yes" if found.template else "none: messages are joined as plain text"),
        ("shards", there + gone),
    ]


@models.command()
def random(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new folder.")],
    family: Annotated[str, typer.Option(help="llada or dream.")] = "llada",
    size: Annotated[str, typer.Option(help=", ".join(SIZES) + ".")] = "nano",
    seed: Annotated[int, typer.Option(help="Of the random numbers.")] = 0,
    dtype: Annotated[str, typer.Option(help="bfloat16, float16 or float32.")] = "bfloat16",
    as_json: Json = False,
) -> None:
    """Write a checkpoint of random numbers in a family's published file format."""
    # The dtype is one to store numbers in, whatever this machine can compute in.
    folder = random_folder(out, family, size, seed=seed, dtype=stored_dtype(dtype))
    found = describe(folder)
    if as_json:
        print(json.dumps({"folder": str(folder), "parameters": found.parameters, "shards": found.shards}))
    else:
        print(f"{folder}: {found.parameters:,} random parameters in {len(found.shards)} shards")
