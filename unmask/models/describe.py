"""What a checkpoint is, told from its small files alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unmask.errors import UnmaskError
from unmask.models.folder import Folder
from unmask.models.hub import SETTINGS, snapshot
from unmask.models.load import is_folder, registered
from unmask.models.memory import DTYPES, needed, weights_bytes
from unmask.models.model import model
from unmask.models.text import read_json
from unmask.models.transformer import Shape
from unmask.models.weights import INDEX, Shards


@dataclass(frozen=True)
class Description:
    name: str
    family: str
    shape: Shape
    parameters: int
    bytes: dict[str, int]  # of the weights, by dtype
    needed: dict[str, int]  # with room to work, by dtype
    mask_id: int
    mask: str | None  # its text
    eos: dict[int, str]
    template: bool  # whether it has a chat template
    length: int  # masks written when nobody says how many
    shards: list[str]
    missing: list[str]  # shards that are not here; of a hub id, those that were never fetched
    stored: int | None  # bytes of all shards, where that is known


def describe(name: str | Path, revision: str | None = None) -> Description:
    """A checkpoint by its folder or hub id; of a hub id only the settings are fetched, never the weights."""
    path = _path(name, revision)
    folder = Folder.read(path)
    shards = Shards.of(path, here=is_folder(name))
    total = read_json(path / INDEX, {}).get("metadata", {}).get("total_size")
    tokenizer = folder.text.tokenizer
    return Description(
        name=str(name),
        family=folder.family.name,
        shape=folder.shape,
        parameters=folder.shape.parameters,
        bytes={dtype: weights_bytes(folder.shape, dtype) for dtype in DTYPES},
        needed={dtype: needed(folder.shape, dtype) for dtype in DTYPES},
        mask_id=folder.mask_id,
        mask=tokenizer.id_to_token(folder.mask_id),
        eos={number: tokenizer.id_to_token(number) or "" for number in sorted(folder.eos)},
        template=folder.text.template is not None,
        length=folder.length,
        shards=shards.files,
        missing=[file for file in shards.files if not (path / file).exists()],
        stored=total if isinstance(total, int) else shards.bytes or None,
    )


def _path(name: str | Path, revision: str | None) -> Path:
    if registered(name):
        folder = getattr(model.make(str(name)), "folder", None)
        if folder is None:
            raise UnmaskError(f"{str(name)!r} is made by code, not read from a checkpoint: there is no file to inspect")
        return Path(folder)
    return Path(name).expanduser() if is_folder(name) else snapshot(str(name), SETTINGS, revision)
