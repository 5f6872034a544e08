"""What a checkpoint is and what memory it needs, read from its small files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from unmask.errors import UnmaskError
from unmask.models.checkpoints.manifest import read_manifest
from unmask.models.checkpoints.weights import Shards
from unmask.models.devices import DTYPES, needed, weights_bytes
from unmask.models.load import checkpoint_folder, is_folder, registered
from unmask.models.network.kv_cache import EXACT, Keep
from unmask.models.network.transformer import Shape


@dataclass(frozen=True)
class Inspection:
    name: str
    family: str
    shape: Shape
    parameters: int
    bytes: dict[str, int]  # of the weights, per dtype
    needed: dict[str, int]  # with room to work, per dtype
    mask_id: int
    mask: str | None  # its text
    eos: dict[int, str]
    template: bool  # whether it has a chat template
    length: int  # masks written by default
    attention: str  # full or block-causal
    caches: dict[str, list[str]]  # exact and approximate ones
    shards: list[str]
    missing: list[str]  # shards that are not on this machine
    stored: int | None  # bytes of all shards, where known


def caches_of(shape: Shape) -> dict[str, list[str]]:
    """Only where nothing depends on what comes after its block is a cache exact."""
    if shape.block is not None:
        return {"exact": [EXACT], "approximate": []}
    return {"exact": [], "approximate": list(get_args(Keep))}


def inspect_checkpoint(name: str | Path, revision: str | None = None) -> Inspection:
    """A checkpoint by its folder or hub id. Of a hub id only the small files are fetched."""
    folder = checkpoint_folder(name, revision)
    if folder is None:
        raise UnmaskError(f"{str(name)!r} is built by code, not read from a checkpoint: it has no files to inspect")
    manifest, shards = read_manifest(folder), Shards.of(folder, local=registered(name) or is_folder(name))
    tokenizer = manifest.text.tokenizer
    return Inspection(
        name=str(name),
        family=manifest.family.name,
        shape=manifest.shape,
        parameters=manifest.shape.parameters,
        bytes={dtype: weights_bytes(manifest.shape, dtype) for dtype in DTYPES},
        needed={dtype: needed(manifest.shape, dtype) for dtype in DTYPES},
        mask_id=manifest.mask_id,
        mask=tokenizer.id_to_token(manifest.mask_id),
        eos={number: tokenizer.id_to_token(number) or "" for number in sorted(manifest.eos)},
        template=manifest.text.template is not None,
        length=manifest.length,
        attention="full" if manifest.shape.block is None else "block-causal",
        caches=caches_of(manifest.shape),
        shards=shards.files,
        missing=[file for file in shards.files if not (folder / file).exists()],
        stored=shards.total or shards.bytes or None,
    )
