"""A checkpoint's digest: two checkpoints under one name are told apart without being loaded.

The small files that shape a model's text and network are hashed whole. The weights of a hub id are known by its commit.
A folder's weights are hashed whole where they are small; of larger ones the sizes, the headers (every tensor's name,
type and shape) and three blocks of every tensor are, so that a changed number inside a tensor may go unnoticed, but not
other training, another merge or another precision.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from unmask.errors import UnmaskError
from unmask.models.checkpoints.tokenizer import read_text
from unmask.models.checkpoints.weights import INDEX, Shards
from unmask.models.load import checkpoint_folder, is_folder, registered

WHOLE = 1 << 28  # bytes of weights that are hashed whole
BLOCK = 1 << 12  # bytes at the start, the middle and the end of every tensor of larger weights
SMALL = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    INDEX,
)


def digest(name: str, revision: str | None = None) -> dict[str, Any] | None:
    """What a run remembers of a model; None for one that is built by code, whose spec says everything.

    `weights` tells how far they were looked at: `whole`, `sampled`, or only by the hub's `revision`.
    """
    folder = checkpoint_folder(name, revision)
    if folder is None:
        return None
    if registered(name) or is_folder(name):
        files = [folder / file for file in Shards.of(folder).files]
        weights = "whole" if sum(file.stat().st_size for file in files) <= WHOLE else "sampled"
        commit = None
    else:
        files, weights, commit = [], "revision", folder.name
    small = [folder / file for file in SMALL if (folder / file).exists()]
    parts = [_hash(file, "whole", _version(file)) for file in small]
    parts += [_hash(file, weights, _version(file)) for file in files]
    return {
        "digest": _join([commit or "", *parts]),
        "weights": weights,
        "revision": commit,
        "template": _template(folder),
    }


def checkpoint(name: str) -> dict[str, Any] | None:
    """The digest; None also where this machine does not have the model, or may not read it."""
    try:
        return digest(name)
    except (UnmaskError, OSError):
        return None


def _template(folder: Path) -> str | None:
    template = read_text(folder).template
    return None if template is None else _join([template])


def _version(file: Path) -> tuple[int, int, int]:
    """Changes when a file is written or replaced."""
    state = file.stat()
    return state.st_ino, state.st_size, state.st_mtime_ns


@lru_cache(maxsize=4096)
def _hash(file: Path, how: str, version: tuple[int, int, int]) -> str:
    size = version[1]
    with file.open("rb") as opened:
        blocks = _sampled(opened, size) if how == "sampled" else [(start, 1 << 20) for start in range(0, size, 1 << 20)]
        total = blake2b(f"{file.name} {size}".encode(), digest_size=16)
        for start, count in blocks:
            total.update(_block(opened, start, count))
    return total.hexdigest()


def _sampled(file: BinaryIO, size: int) -> list[tuple[int, int]]:
    """The header, and blocks of every tensor; of a file that is not safetensors, blocks of the file."""
    length = int.from_bytes(_block(file, 0, 8), "little")
    try:
        header = json.loads(_block(file, 8, min(length, size)))
        tensors = [entry["data_offsets"] for name, entry in sorted(header.items()) if name != "__metadata__"]
    except (ValueError, KeyError, TypeError, AttributeError):
        length, tensors = 0, [(0, max(size - 8, 0))]
    blocks = [(0, 8 + length)]
    for start, stop in tensors:
        places = (start, (start + stop - BLOCK) // 2, stop - BLOCK)
        blocks += [(8 + length + max(place, start), min(BLOCK, stop - start)) for place in places]
    return blocks


def _block(file: BinaryIO, start: int, size: int) -> bytes:
    return os.pread(file.fileno(), size, start)


def _join(parts: list[str]) -> str:
    return blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
