"""`unmask models`: inspect a checkpoint, or write one of random numbers."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.boundary import print_json
from unmask.errors import UnmaskError
from unmask.models.checkpoints.random_weights import SIZES, random_folder
from unmask.models.devices import format_bytes, stored_dtype
from unmask.models.families.family import DEFAULT_FAMILY
from unmask.models.families.family import family as families
from unmask.models.load import Inspection, inspect_checkpoint

models = typer.Typer(name="models", help="Look into checkpoints, or make random ones.", no_args_is_help=True)
app.add_typer(models)


@models.command()
def inspect(
    name: Annotated[str, typer.Argument(metavar="ID|FOLDER", help="A hub id, or the folder of a checkpoint.")],
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of a hub id.")] = None,
    as_json: options.Json = False,
) -> None:
    """Say what a checkpoint is and what memory it needs; no weight is fetched or read."""
    if not name:
        raise UnmaskError("the model's name is empty: give a hub id or a folder")
    inspection = inspect_checkpoint(name, revision)
    if as_json:
        print_json(dataclasses.asdict(inspection))
        return
    for key, value in _lines(inspection):
        print(f"{key:<12}{value}")


def _lines(inspection: Inspection) -> list[tuple[str, str]]:
    shape = inspection.shape
    heads = f"{shape.heads} heads" + (f" ({shape.kv_heads} for keys)" if shape.kv_heads != shape.heads else "")
    if shape.head is not None:
        heads += f" of width {shape.head}"
    mlp = f"MLP {shape.hidden}"
    if shape.experts is not None:
        mlp += f", {shape.experts.count} experts of {shape.experts.hidden}, {shape.experts.chosen} per position"
    shards = f"{len(inspection.shards)}"
    if inspection.stored:
        shards += f", {format_bytes(inspection.stored)}"
    if inspection.missing:
        shards += f" ({len(inspection.missing)} not here)"
    return [
        ("name", inspection.name),
        ("family", inspection.family),
        ("shape", f"{shape.layers} layers of width {shape.width}, {heads}, {mlp}"),
        ("attention", "full" if shape.block is None else f"block-causal, blocks of {shape.block}"),
        ("caches", _caches(inspection)),
        ("vocabulary", f"{shape.vocab}"),
        ("context", f"{shape.context} positions; {inspection.length} written by default"),
        ("parameters", f"{inspection.parameters:,}"),
        ("weights", _sizes(inspection.bytes)),
        ("to run", f"about {_sizes(inspection.needed)}"),
        ("mask", f"{inspection.mask_id} {inspection.mask or ''}".strip()),
        ("ends", ", ".join(f"{number} {token}" for number, token in inspection.eos.items())),
        ("template", "yes" if inspection.template else "none: messages are joined as plain text"),
        ("shards", shards),
    ]


def _caches(inspection: Inspection) -> str:
    if inspection.caches["exact"]:
        return f"{', '.join(inspection.caches['exact'])}, on by default and the same to the bit in float32"
    return f"{', '.join(inspection.caches['approximate'])}, both approximate; none by default"


def _sizes(sizes: dict[str, int]) -> str:
    return ", ".join(f"{format_bytes(sizes[dtype])} in {dtype}" for dtype in ("bfloat16", "float32"))


@models.command()
def random(
    name: Annotated[
        str, typer.Argument(metavar="FAMILY", help=", ".join(families) + "; without --out the new folder.")
    ],
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="A new folder.")] = None,
    family: Annotated[str | None, typer.Option(help="The family, where the folder comes first.")] = None,
    size: Annotated[str, typer.Option(help=", ".join(SIZES) + ".")] = "nano",
    seed: Annotated[int, typer.Option(help="Of the random numbers.")] = 0,
    dtype: Annotated[str, typer.Option(help="bfloat16, float16 or float32.")] = "bfloat16",
    as_json: options.Json = False,
) -> None:
    """Write a checkpoint of random numbers in a family's published file format.

    \b
    Examples:
      unmask models random sdar --out my-sdar
      unmask models random llada2 --size tiny --out my-llada2
    """
    if out is not None and family is not None:
        raise UnmaskError(f"the family is named twice, {name!r} and {family!r}: leave out --family")
    target, kind = (Path(name), family or DEFAULT_FAMILY) if out is None else (out, name)
    if out is None and family is None and name in families:
        raise UnmaskError(f"{name!r} is a family: name a new folder with --out, or ./{name} if that is the folder")
    folder = random_folder(target, kind, size, seed=seed, dtype=stored_dtype(dtype))
    inspection = inspect_checkpoint(folder)
    if as_json:
        print_json({"folder": str(folder), "parameters": inspection.parameters, "shards": inspection.shards})
    else:
        print(f"{folder}: {inspection.parameters:,} random parameters in {len(inspection.shards)} shards")
