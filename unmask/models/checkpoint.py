"""Writing a checkpoint in a family's published format, shard by shard and slice by slice."""

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
from unmask.models.family import Family, Ids
from unmask.models.folder import FAMILIES
from unmask.models.transformer import Shape, Transformer
from unmask.models.weights import INDEX, SINGLE

SHARD = 5 * 10**9  # bytes of a shard, as the hub's tools cut them
PIECE = 2**24  # numbers made and written at a time
NAMES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}


@dataclass(frozen=True)
class Entry:
    """A tensor to be written: `rows(start, stop)` gives a part of it, asked for in order."""

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
    family: str = "llada",
    dtype: torch.dtype = torch.float16,
    shard: int = SHARD,
    length: int | None = None,
) -> Path:
    """Write a module as a checkpoint that `load_folder` and the family's own code read.

    `mask`, `eos` and `bos` are tokens of the tokenizer, `template` is its chat template (None: plain text), `shard` the
    most bytes of a file, `length` how many masks to write when nobody says.
    """
    kind, path = FAMILIES[family], Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    for old in (*path.glob("model-*-of-*.safetensors"), path / INDEX, path / SINGLE):
        old.unlink(missing_ok=True)
    write_shards(path, _entries(module, kind), dtype, shard)
    tokenizer.save(str(path / "tokenizer.json"))
    specials = {"mask_token": mask, "eos_token": eos, "pad_token": eos, **({"bos_token": bos} if bos else {})}
    write_json(path / "tokenizer_config.json", tokenizer_config(specials, template, "PreTrainedTokenizerFast"))
    write_json(path / "special_tokens_map.json", specials)
    if length is not None:
        write_json(path / "generation_config.json", {"max_new_tokens": length})
    ids = Ids(mask=_id(tokenizer, mask), eos=_id(tokenizer, eos))
    write_config(path, kind, module.shape, ids, dtype)
    return path


def write_config(path: Path, family: Family, shape: Shape, ids: Ids, dtype: torch.dtype) -> None:
    """The last file written: a folder without it is not a checkpoint."""
    said = str(dtype).removeprefix("torch.")
    write_json(path / "config.json", {**family.config(shape, ids), "torch_dtype": said})


def tokenizer_config(specials: dict[str, str], template: str | None, kind: str) -> dict[str, Any]:
    chat = {} if template is None else {"chat_template": template}
    return {**specials, **chat, "clean_up_tokenization_spaces": False, "tokenizer_class": kind}


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _id(tokenizer: Tokenizer, token: str) -> int:
    found = tokenizer.token_to_id(token)
    if found is None:
        raise UnmaskError(f"the tokenizer has no token {token!r}: add it as a special token first")
    return found


def _entries(module: Transformer, family: Family) -> Iterable[Entry]:
    ours = dict(module.named_parameters())
    for weight in family.weights(module.shape):
        part = ours[weight.parameter].detach()[weight.start : weight.start + weight.shape[0]]
        yield Entry(weight.name, weight.shape, lambda start, stop, part=part: part[start:stop])


def write_shards(folder: Path, entries: Iterable[Entry], dtype: torch.dtype, shard: int) -> None:
    if dtype not in NAMES:
        raise UnmaskError(f"a checkpoint cannot be written in {dtype}: use float32, float16 or bfloat16")
    groups = _pack(entries, dtype, shard)
    if len(groups) == 1:
        _write(folder / SINGLE, groups[0], dtype)
        return
    place: dict[str, str] = {}
    for number, group in enumerate(groups, start=1):
        name = f"model-{number:05d}-of-{len(groups):05d}.safetensors"
        _write(folder / name, group, dtype)
        place |= {entry.name: name for entry in group}
    total = sum(_bytes(entry, dtype) for group in groups for entry in group)
    write_json(folder / INDEX, {"metadata": {"total_size": total}, "weight_map": place})


def _pack(entries: Iterable[Entry], dtype: torch.dtype, shard: int) -> list[list[Entry]]:
    """In order, each file as full as it may be; a tensor larger than that has a file to itself."""
    groups: list[list[Entry]] = [[]]
    room = shard
    for entry in entries:
        if groups[-1] and _bytes(entry, dtype) > room:
            groups.append([])
            room = shard
        groups[-1].append(entry)
        room -= _bytes(entry, dtype)
    return groups


def _bytes(entry: Entry, dtype: torch.dtype) -> int:
    return torch.Size(entry.shape).numel() * dtype.itemsize


def _write(path: Path, entries: list[Entry], dtype: torch.dtype) -> None:
    """The safetensors format: the header's length, the header as JSON, then the numbers without gaps."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for entry in entries:
        start, end = end, end + _bytes(entry, dtype)
        header[entry.name] = {"dtype": NAMES[dtype], "shape": entry.shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for entry in entries:
            _write_tensor(file, entry, dtype)
    part.rename(path)


def _write_tensor(file: BinaryIO, entry: Entry, dtype: torch.dtype) -> None:
    step = max(1, PIECE * entry.shape[0] // torch.Size(entry.shape).numel())
    for start in range(0, entry.shape[0], step):
        made = entry.rows(start, min(start + step, entry.shape[0])).to(dtype)
        if not made.isfinite().all():
            raise UnmaskError(f"weight {entry.name} has numbers that {dtype} cannot hold: write it in bfloat16")
        file.write(made.cpu().contiguous().view(torch.uint8).numpy().data)
