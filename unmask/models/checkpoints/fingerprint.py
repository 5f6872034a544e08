"""The fingerprint of a checkpoint: two checkpoints under one name are distinguished without being loaded.

The small files that affect a model's text and network are hashed whole. The weights of a hub id are identified by its
commit. A folder's weights are hashed whole where they are small. Of larger ones the sizes and evenly spaced blocks are
hashed: a single changed number may go unnoticed, but not different training, merging or precision.
"""

from __future__ import annotations

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
BLOCK, BLOCKS = 1 << 12, 2048  # bytes of a block, and blocks that are hashed of each shard of larger weights
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
    step = max(BLOCK, size // BLOCKS) if how == "sampled" else BLOCK
    total = blake2b(f"{file.name} {size}".encode(), digest_size=16)
    with file.open("rb") as opened:
        for start in range(0, size, step):
            total.update(_block(opened, start, BLOCK))
    return total.hexdigest()


def _block(file: BinaryIO, start: int, size: int) -> bytes:
    return os.pread(file.fileno(), size, start)


def _join(parts: list[str]) -> str:
    return blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
