"""The fingerprint of a checkpoint: two checkpoints under one name are distinguished without being loaded.

The small files that affect a model's text and network are hashed whole. The weights of a hub id are identified by its
commit. A folder's weights are hashed whole where they are small. Of larger ones the sizes, the headers (every tensor's
name, type and shape) and three blocks of every tensor are hashed: a single changed number may go unnoticed, but not
different training, merging or precision.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from unmask.errors import UnmaskError
from unmask.models.checkpoints.config import read_json
from unmask.models.checkpoints.tokenizer import read_template
from unmask.models.checkpoints.weights import INDEX, Shards
from unmask.models.load import checkpoint_folder, is_folder, registered

WHOLE = 1 << 28  # bytes of weights that are hashed whole
BLOCK = 1 << 12  # bytes hashed at the start, the middle and the end of every tensor of larger weights
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


def fingerprint(name: str, revision: str | None = None) -> dict[str, Any] | None:
    """Return what a run records about a model; None for one that is built by code, whose spec identifies it.

    `weights` is how they were hashed: `whole`, `sampled`, or only by the hub's `revision`.
    """
    folder = checkpoint_folder(name, revision)
    if folder is None:
        return None
    if registered(name) or is_folder(name):
        shards, commit = [folder / file for file in Shards.of(folder).files], None
        weights = "whole" if sum(file.stat().st_size for file in shards) <= WHOLE else "sampled"
    else:
        shards, commit, weights = [], folder.name, "revision"
    parts = [_hash(folder / file, "whole") for file in SMALL if (folder / file).exists()]
    parts += [_hash(file, weights) for file in shards]
    template = read_template(folder, read_json(folder / "tokenizer_config.json", {}))
    return {
        "digest": _join([commit or "", *parts]),
        "weights": weights,
        "revision": commit,
        "template": None if template is None else _join([template]),
    }


def local_fingerprint(name: str) -> dict[str, Any] | None:
    """Return the fingerprint; None also where this machine does not have the model, or may not read it."""
    try:
        return fingerprint(name)
    except (UnmaskError, OSError):
        return None


def _hash(file: Path, how: str) -> str:
    state = file.stat()
    return _hash_version(file, how, (state.st_ino, state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=4096)
def _hash_version(file: Path, how: str, version: tuple[int, int, int]) -> str:
    """Hash a file once per version, which changes when the file is written or replaced."""
    size = version[1]
    with file.open("rb") as opened:
        blocks = _sampled(opened, size) if how == "sampled" else [(start, 1 << 20) for start in range(0, size, 1 << 20)]
        total = blake2b(f"{file.name} {size}".encode(), digest_size=16)
        for start, count in blocks:
            total.update(_block(opened, start, count))
    return total.hexdigest()


def _sampled(file: BinaryIO, size: int) -> list[tuple[int, int]]:
    """Return the header and blocks of every tensor; of a file that is not safetensors, blocks of the file."""
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
