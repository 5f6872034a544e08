"""Reads sharded safetensors onto a device: all headers are checked first, then tensors are copied slice by slice."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from unmask.errors import UnmaskError
from unmask.models.checkpoints.tokenizer import check_file, read_json
from unmask.models.checkpoints.weight_names import Weight
from unmask.models.families.family import Family
from unmask.models.network.transformer import Shape, Transformer

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
PIECE = 2**26  # bytes copied at a time: the extra memory that a change of dtype takes
LONGEST = 255  # characters of a shard's name
FLOATS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}  # bytes per number of the dtypes a shard may have


@dataclass(frozen=True)
class Shards:
    folder: Path
    index: dict[str, str]  # the file of each tensor; empty without an index
    total: int | None = None  # bytes of all tensors, where the index says so

    @classmethod
    def of(cls, folder: Path, local: bool = True) -> Shards:
        """As the index lists them; without one there is a single file, which must exist if `local`."""
        if (folder / INDEX).exists():
            table = read_json(folder / INDEX)
            index, about = table.get("weight_map"), table.get("metadata") or {}
            if not isinstance(index, dict) or not index:
                raise UnmaskError(f"{folder / INDEX} has no weight_map: fetch the file again")
            if not isinstance(about, dict):
                raise UnmaskError(f"{folder / INDEX} has metadata that is not an object: fetch the file again")
            for name in index.values():
                _check_inside(folder, name)
            total = about.get("total_size")
            return cls(folder, index, total if isinstance(total, int) and total > 0 else None)
        if not local or (folder / SINGLE).exists():
            return cls(folder, {})
        raise UnmaskError(_missing(folder))

    @property
    def files(self) -> list[str]:
        return sorted(set(self.index.values())) or [SINGLE]

    @property
    def bytes(self) -> int:
        return sum((self.folder / file).stat().st_size for file in self.files if (self.folder / file).exists())


def _check_inside(folder: Path, name: Any) -> None:
    path = PurePosixPath(str(name))
    if not isinstance(name, str) or path.is_absolute() or ".." in path.parts or "\\" in name:
        raise UnmaskError(f"{folder / INDEX} points outside its folder, at {name!r}: do not trust this checkpoint")
    if len(name) > LONGEST:
        raise UnmaskError(f"{folder / INDEX} names a shard of {len(name)} characters, {name[:40]!r}…: fetch it again")


def _missing(folder: Path) -> str:
    patterns = ("*.bin", "*.pt", "*.pth", "*.ckpt", "pytorch_model.bin.index.json")
    pickles = sorted(path.name.removesuffix(".index.json") for pattern in patterns for path in folder.glob(pattern))
    if pickles:
        return (
            f"{folder} holds its weights as pickle ({pickles[0]}), which can run code when opened: "
            "ask its authors for safetensors, or convert it with safetensors.torch.save_file where you trust it"
        )
    return f"{folder} has no weights: it needs {SINGLE}, or {INDEX} with its shards (.bin files are pickle, never read)"


def fill(module: Transformer, family: Family, shards: Shards) -> None:
    """Copy the published weights into the fused ones, after checking every name and shape."""
    wanted = list(family.weights(module.shape))
    with ExitStack() as stack:
        files = {file: stack.enter_context(_open(shards.folder / file)) for file in shards.files}
        place = _places(files)
        for weight in wanted:
            _check_weight(weight, files, place, shards)
        _check_spare(wanted, place, family, module.shape)
        parameters = dict(module.named_parameters())
        with torch.no_grad():
            for weight in sorted(wanted, key=lambda weight: place[weight.name]):
                copy(weight.rows(parameters), files[place[weight.name]].get_tensor(weight.name))


def _places(files: dict[str, Any]) -> dict[str, str]:
    """The file of each tensor."""
    place: dict[str, str] = {}
    for file, opened in files.items():
        for name in opened.offset_keys():
            if name in place:
                raise UnmaskError(f"weight {name} is in {place[name]} and in {file}: fetch the checkpoint again")
            place[name] = file
    return place


def copy(target: Tensor, source: Tensor) -> None:
    """In slices, converted on the target device: the host never holds a second copy."""
    step = max(1, PIECE * len(source) // max(1, source.nbytes))
    for rows, part in zip(target.split(step), source.split(step), strict=True):
        rows.copy_(part.to(rows.device) if part.dtype != rows.dtype else part)


def _open(path: Path) -> Any:
    try:
        check_file(path)
        return safe_open(str(path), framework="pt")
    except FileNotFoundError:
        raise UnmaskError(f"shard {path.name} is missing from {path.parent}: fetch the checkpoint again") from None
    except (SafetensorError, OSError) as error:
        raise UnmaskError(f"{path} is cut short or damaged ({error}): fetch the file again") from None


def _check_weight(weight: Weight, files: dict[str, Any], place: dict[str, str], shards: Shards) -> None:
    file = place.get(weight.name)
    if file is None:
        expected = shards.index.get(weight.name, "any shard")
        raise UnmaskError(f"weight {weight.name} is not in {expected} of {shards.folder}: the checkpoint is incomplete")
    header = files[file].get_slice(weight.name)
    if tuple(header.get_shape()) != weight.shape:
        raise UnmaskError(
            f"weight {weight.name} in {file} has shape {_by(header.get_shape())}, config.json asks for "
            f"{_by(weight.shape)}: they belong to different checkpoints"
        )
    if header.get_dtype() not in FLOATS:
        raise UnmaskError(f"weight {weight.name} in {file} is {header.get_dtype()}: only {', '.join(FLOATS)} are read")


def _check_spare(wanted: list[Weight], place: dict[str, str], family: Family, shape: Shape) -> None:
    ignored = {weight.name for weight in wanted} | ({f"{family.names.head}.weight"} if shape.tied else set())
    spare = sorted(name for name in set(place) - ignored if not name.endswith("rotary_emb.inv_freq"))
    if spare:
        raise UnmaskError(
            f"weight {spare[0]} in {place[spare[0]]} is not part of a {family.name} model as config.json describes it "
            f"({len(spare)} such weights): they belong to different checkpoints"
        )


def _by(shape: Any) -> str:
    return "×".join(map(str, shape))
