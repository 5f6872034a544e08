"""Read the sharded safetensors of a checkpoint onto a device, and write a checkpoint in a family's published format."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from huggingface_hub import split_state_dict_into_shards_factory
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from unmask.errors import UnmaskError
from unmask.models.checkpoints.config import Config, check_file, read_json
from unmask.models.families.family import DEFAULT_FAMILY, Family, Weight
from unmask.models.families.family import family as families
from unmask.models.network.transformer import Shape, Transformer

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
PIECE = 2**26  # bytes copied at a time: the extra memory that a change of dtype takes
LONGEST = 255  # characters of a shard's name
FLOATS = ("F64", "F32", "F16", "BF16")  # dtypes that a shard may have
SHARD = 5 * 10**9  # bytes per shard that is written, as in the hub's tools
WRITTEN = (torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Shards:
    """The files that hold a checkpoint's weights."""

    folder: Path
    index: dict[str, str]  # file of each tensor; empty without an index
    total: int | None = None  # bytes of all tensors, where the index has them

    @classmethod
    def of(cls, folder: Path, local: bool = True) -> Shards:
        """Return the shards that the index lists; without one there is a single file, which must exist if `local`."""
        if (folder / INDEX).exists():
            table = read_json(folder / INDEX)
            index, about = table.get("weight_map"), table.get("metadata") or {}
            if not isinstance(index, dict) or not index:
                raise UnmaskError(f"{folder / INDEX} has no weight_map: download the file again")
            if not isinstance(about, dict):
                raise UnmaskError(f"{folder / INDEX} has metadata that is not an object: download the file again")
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
        raise UnmaskError(
            f"{folder / INDEX} names a shard of {len(name)} characters, {name[:40]!r}…: download it again"
        )


def _missing(folder: Path) -> str:
    """Return why a folder has no weights that can be read."""
    patterns = ("*.bin", "*.pt", "*.pth", "*.ckpt", "pytorch_model.bin.index.json")
    pickles = sorted(path.name.removesuffix(".index.json") for pattern in patterns for path in folder.glob(pattern))
    if pickles:
        return (
            f"{folder} stores its weights as pickle ({pickles[0]}), which can run code when opened: "
            "ask its authors for safetensors, or convert it with safetensors.torch.save_file if you trust it"
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
    """Return the file of each tensor; refuse a tensor in two files."""
    place: dict[str, str] = {}
    for file, opened in files.items():
        for name in opened.offset_keys():
            if name in place:
                raise UnmaskError(f"weight {name} is in {place[name]} and in {file}: download the checkpoint again")
            place[name] = file
    return place


def copy(target: Tensor, source: Tensor) -> None:
    """Copy in slices, converted on the target device, so that the host never needs memory for a second copy."""
    step = max(1, PIECE * len(source) // max(1, source.nbytes))
    for rows, part in zip(target.split(step), source.split(step), strict=True):
        rows.copy_(part.to(rows.device) if part.dtype != rows.dtype else part)


def _open(path: Path) -> Any:
    try:
        check_file(path)
        return safe_open(str(path), framework="pt")
    except FileNotFoundError:
        raise UnmaskError(f"shard {path.name} is missing from {path.parent}: download the checkpoint again") from None
    except (SafetensorError, OSError) as error:
        raise UnmaskError(f"{path} is cut short or damaged ({error}): download the file again") from None


def _check_weight(weight: Weight, files: dict[str, Any], place: dict[str, str], shards: Shards) -> None:
    file = place.get(weight.name)
    if file is None:
        expected = shards.index.get(weight.name, "any shard")
        raise UnmaskError(f"weight {weight.name} is not in {expected} of {shards.folder}: the checkpoint is incomplete")
    header = files[file].get_slice(weight.name)
    if tuple(header.get_shape()) != weight.shape:
        raise UnmaskError(
            f"weight {weight.name} in {file} must have shape {_by(weight.shape)} by config.json, got "
            f"{_by(header.get_shape())}: the files are from different checkpoints"
        )
    if header.get_dtype() not in FLOATS:
        raise UnmaskError(
            f"weight {weight.name} in {file} must have one of the dtypes {', '.join(FLOATS)}, got {header.get_dtype()}"
        )


def _check_spare(wanted: list[Weight], place: dict[str, str], family: Family, shape: Shape) -> None:
    ignored = {weight.name for weight in wanted} | ({f"{family.names.head}.weight"} if shape.tied else set())
    spare = sorted(name for name in set(place) - ignored if not name.endswith("rotary_emb.inv_freq"))
    if spare:
        raise UnmaskError(
            f"weight {spare[0]} in {place[spare[0]]} is not part of a {family.name} model as config.json describes it "
            f"({len(spare)} such weights): the files are from different checkpoints"
        )


def _by(shape: Any) -> str:
    return "×".join(map(str, shape))


def save_folder(
    module: Transformer,
    tokenizer: Tokenizer,
    folder: str | Path,
    *,
    mask: str,
    eos: str,
    bos: str | None = None,
    template: str | None = None,
    family: str = DEFAULT_FAMILY,
    dtype: torch.dtype = torch.float16,
    shard: int = SHARD,
    length: int | None = None,
) -> Path:
    """Write a module as a checkpoint that `load_folder` and the family's own code can read.

    `mask`, `eos` and `bos` are tokens of the tokenizer, `template` is its chat template (None: plain text), `shard` the
    maximum number of bytes per file, `length` the number of masks to write by default.
    """
    kind, path, parameters = families.make(family), Path(folder), dict(module.named_parameters())
    path.mkdir(parents=True, exist_ok=True)
    for old in (*path.glob("model-*-of-*.safetensors"), path / INDEX, path / SINGLE):
        old.unlink(missing_ok=True)
    weights = list(kind.weights(module.shape))
    write_shards(path, weights, lambda weight: weight.rows(parameters).detach().to(dtype), dtype, shard)
    tokenizer.save(str(path / "tokenizer.json"))
    specials = {"mask_token": mask, "eos_token": eos, "pad_token": eos, **({"bos_token": bos} if bos else {})}
    write_specials(path, specials, template)
    if length is not None:
        write_json(path / "generation_config.json", {"max_new_tokens": length})
    write_config(path, kind.config(module.shape, token_id(tokenizer, mask), token_id(tokenizer, eos)), dtype)
    return path


def write_shards(
    folder: Path, weights: list[Weight], compute: Callable[[Weight], Tensor], dtype: torch.dtype, shard: int
) -> None:
    """Write `compute(weight)` of every weight. Only the tensors of one shard are in memory at a time."""
    if dtype not in WRITTEN:
        raise UnmaskError(f"a checkpoint cannot be written in {dtype}: use float32, float16 or bfloat16")
    by_name = {weight.name: weight for weight in weights}
    split = split_state_dict_into_shards_factory(
        by_name,
        get_storage_size=lambda weight: torch.Size(weight.shape).numel() * dtype.itemsize,
        filename_pattern="model{suffix}.safetensors",
        max_shard_size=shard,
    )
    for file, names in split.filename_to_tensors.items():
        tensors = {name: compute(by_name[name]).cpu().contiguous() for name in names}
        for name, tensor in tensors.items():
            if not tensor.isfinite().all():
                raise UnmaskError(f"weight {name} has numbers that {dtype} cannot represent: write it in bfloat16")
        save_file(tensors, folder / file, metadata={"format": "pt"})
    if split.is_sharded:
        write_json(folder / INDEX, {"metadata": split.metadata, "weight_map": split.tensor_to_filename})


def write_config(folder: Path, config: Config, dtype: torch.dtype) -> None:
    """Write config.json, which must be the last file: a folder without it is not a checkpoint."""
    write_json(folder / "config.json", {**config, "torch_dtype": str(dtype).removeprefix("torch.")})


def write_specials(folder: Path, specials: dict[str, str], template: str | None) -> None:
    """Write the special tokens and the chat template."""
    chat = {} if template is None else {"chat_template": template}
    kind = {"clean_up_tokenization_spaces": False, "tokenizer_class": "PreTrainedTokenizerFast"}
    write_json(folder / "tokenizer_config.json", specials | chat | kind)
    write_json(folder / "special_tokens_map.json", specials)


def write_json(path: Path, content: Any) -> None:
    """Write a file that is complete or absent, never half written."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)


def token_id(tokenizer: Tokenizer, token: str) -> int:
    number = tokenizer.token_to_id(token)
    if number is None:
        raise UnmaskError(f"the tokenizer has no token {token!r}: add it as a special token first")
    return number
