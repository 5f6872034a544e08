"""Benchmark files: from the folder in `UNMASK_DATA` (or `--data`), else from the Hugging Face hub."""

from __future__ import annotations

import csv
import gzip
import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError

VARIABLE = "UNMASK_DATA"
_HINT = f"give a folder that holds the benchmark files with --data DIR or {VARIABLE}"


@dataclass(frozen=True)
class Dataset:
    local: str  # path under the data folder
    repo: str = ""  # on the hub; empty if it is not there
    remote: tuple[str, ...] = ()  # files in the repository

    def rows(self) -> list[Any]:
        folder = os.environ.get(VARIABLE)
        if folder:
            path = Path(folder) / self.local
            if not path.is_file():
                raise UnmaskError(f"no {self.local} in the data folder {folder}: {_HINT}")
            return read(path)
        if not self.repo:
            raise UnmaskError(f"{self.local} is not on the hub: {_HINT}")
        return [row for name in self.remote for row in read(self._download(name))]

    def _download(self, name: str) -> Path:
        from huggingface_hub import hf_hub_download

        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # hides its retries
        try:
            return Path(hf_hub_download(self.repo, name, repo_type="dataset"))
        except Exception as error:  # its errors have no common base class
            kind = type(error).__name__
            raise UnmaskError(f"{self.repo} could not be fetched from the hub ({kind}): {_HINT}") from error


def use(folder: str | Path) -> None:
    """Read from this folder from now on, in this process and its children."""
    if not Path(folder).is_dir():
        raise UnmaskError(f"there is no data folder {folder}")
    os.environ[VARIABLE] = str(Path(folder).resolve())


def read(path: Path) -> list[Any]:
    """One dictionary per record, except in JSON files, which hold any list."""
    try:
        if path.suffix == ".parquet":
            return _parquet(path)
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
        if path.suffix == ".json":
            return json.loads(text)
        if path.suffix == ".csv":
            return list(csv.DictReader(text.splitlines()))
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except (OSError, ValueError) as error:
        raise UnmaskError(f"{path} cannot be read: {error}") from error


def _parquet(path: Path) -> list[Any]:
    try:
        from pyarrow import parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise UnmaskError(f"the hub's files need pyarrow (pip install 'unmask[data]'), or else: {_HINT}") from None
    return parquet.read_table(path).to_pylist()
