"""Write a checkpoint in a family's published format, shard by shard and slice by slice."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from tokenizers import Tokenizer
from torch import Tensor

from unmask.errors import UnmaskError
from unmask.models.checkpoints.config import Config
from unmask.models.checkpoints.weights import INDEX, SINGLE
from unmask.models.families.family import DEFAULT_FAMILY, Family
from unmask.models.families.family import family as families
from unmask.models.network.transformer import Transformer

SHARD = 5 * 10**9  # bytes per shard, as in the hub's tools
PIECE = 2**24  # numbers computed and written at a time
NAMES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}


@dataclass(frozen=True)
class LazyTensor:
    """A tensor to be written: `rows(start, stop)` returns a part of it, and is called in order."""

    name: str
    shape: tuple[int, ...]
    rows: Callable[[int, int], Tensor]


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
    kind, path = families.make(family), Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    for old in (*path.glob("model-*-of-*.safetensors"), path / INDEX, path / SINGLE):
        old.unlink(missing_ok=True)
    write_shards(path, _tensors(module, kind), dtype, shard)
    tokenizer.save(str(path / "tokenizer.json"))
    specials = {"mask_token": mask, "eos_token": eos, "pad_token": eos, **({"bos_token": bos} if bos else {})}
    write_specials(path, specials, template)
    if length is not None:
        write_json(path / "generation_config.json", {"max_new_tokens": length})
    write_config(path, kind.config(module.shape, token_id(tokenizer, mask), token_id(tokenizer, eos)), dtype)
    return path


def write_config(folder: Path, config: Config, dtype: torch.dtype) -> None:
    """The last file written: a folder without it is not a checkpoint."""
    write_json(folder / "config.json", {**config, "torch_dtype": str(dtype).removeprefix("torch.")})


def write_specials(
    folder: Path, specials: dict[str, str], template: str | None, kind: str = "PreTrainedTokenizerFast", **more: Any
) -> None:
    """The special tokens and the chat template, for a tokenizer of class `kind` with `more` settings."""
    chat = {} if template is None else {"chat_template": template}
    settings = {**more, **specials, **chat, "clean_up_tokenization_spaces": False, "tokenizer_class": kind}
    write_json(folder / "tokenizer_config.json", settings)
    write_json(folder / "special_tokens_map.json", specials)


def write_json(path: Path, content: Any) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)


def token_id(tokenizer: Tokenizer, token: str) -> int:
    number = tokenizer.token_to_id(token)
    if number is None:
        raise UnmaskError(f"the tokenizer has no token {token!r}: add it as a special token first")
    return number


def _tensors(module: Transformer, family: Family) -> Iterable[LazyTensor]:
    parameters = dict(module.named_parameters())
    for weight in family.weights(module.shape):
        part = weight.rows(parameters).detach()
        yield LazyTensor(weight.name, weight.shape, lambda start, stop, part=part: part[start:stop])


def write_shards(folder: Path, tensors: Iterable[LazyTensor], dtype: torch.dtype, shard: int) -> None:
    if dtype not in NAMES:
        raise UnmaskError(f"a checkpoint cannot be written in {dtype}: use float32, float16 or bfloat16")
    groups = _pack(tensors, dtype, shard)
    if len(groups) == 1:
        _write(folder / SINGLE, groups[0], dtype)
        return
    files: dict[str, str] = {}
    for number, group in enumerate(groups, start=1):
        name = f"model-{number:05d}-of-{len(groups):05d}.safetensors"
        _write(folder / name, group, dtype)
        files |= {tensor.name: name for tensor in group}
    total = sum(_bytes(tensor, dtype) for group in groups for tensor in group)
    write_json(folder / INDEX, {"metadata": {"total_size": total}, "weight_map": files})


def _pack(tensors: Iterable[LazyTensor], dtype: torch.dtype, shard: int) -> list[list[LazyTensor]]:
    """In order, each file as full as allowed; a tensor that is larger by itself gets its own file."""
    groups: list[list[LazyTensor]] = [[]]
    room = shard
    for tensor in tensors:
        if groups[-1] and _bytes(tensor, dtype) > room:
            groups.append([])
            room = shard
        groups[-1].append(tensor)
        room -= _bytes(tensor, dtype)
    return groups


def _bytes(tensor: LazyTensor, dtype: torch.dtype) -> int:
    return torch.Size(tensor.shape).numel() * dtype.itemsize


def _write(path: Path, tensors: list[LazyTensor], dtype: torch.dtype) -> None:
    """The safetensors format: the length of the header, the header as JSON, then the numbers without gaps."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for tensor in tensors:
        start, end = end, end + _bytes(tensor, dtype)
        header[tensor.name] = {"dtype": NAMES[dtype], "shape": tensor.shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors:
            _write_tensor(file, tensor, dtype)
    part.rename(path)


def _write_tensor(file: BinaryIO, tensor: LazyTensor, dtype: torch.dtype) -> None:
    step = max(1, PIECE * tensor.shape[0] // torch.Size(tensor.shape).numel())
    for start in range(0, tensor.shape[0], step):
        part = tensor.rows(start, min(start + step, tensor.shape[0])).to(dtype)
        if not part.isfinite().all():
            raise UnmaskError(f"weight {tensor.name} has numbers that {dtype} cannot hold: write it in bfloat16")
        file.write(part.cpu().contiguous().view(torch.uint8).numpy().data)
