"""Reads benchmark files from the folder in `UNMASK_DATA` (or `--data`), else from the Hugging Face hub."""

from __future__ import annotations

import csv
import gzip
import json
import logging
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError

VARIABLE = "UNMASK_DATA"
_HINT = f"name a folder with the benchmark files by --data DIR or {VARIABLE}"


class Entry(dict[str, Any]):
    """A record of a file; the error for a missing column says which record it is."""

    def __init__(self, where: str, values: dict[str, Any]):
        super().__init__(values)
        self.where = where

    def __missing__(self, column: str) -> Any:
        raise UnmaskError(f"{self.where} has no {column!r}: it has {', '.join(map(str, self)) or 'nothing'}")


@dataclass(frozen=True)
class Dataset:
    local: str  # path under the data folder
    repo: str = ""  # repository on the hub, if there is one
    remote: tuple[str, ...] = ()  # files in the repository

    def rows(self) -> list[Any]:
        """Read all records, from the data folder if it is set."""
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
    """Set the data folder of this process and its children."""
    if not Path(folder).is_dir():
        raise UnmaskError(f"there is no data folder {folder}")
    os.environ[VARIABLE] = str(Path(folder).resolve())


def read(path: Path) -> list[Any]:
    """Return one dictionary per record, except for JSON files, which contain any list."""
    rows = _read(path)
    for number, row in enumerate(rows, 1):
        if path.suffix != ".json" and not isinstance(row, dict):
            raise UnmaskError(f"record {number} of {path} is not an object: {str(row)[:40]!r}")
    return [Entry(f"record {n} of {path}", row) if isinstance(row, dict) else row for n, row in enumerate(rows, 1)]


def _read(path: Path) -> list[Any]:
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
    except (OSError, ValueError, EOFError, zlib.error, RecursionError) as error:
        raise UnmaskError(f"{path} cannot be read: {error}") from error


def _parquet(path: Path) -> list[Any]:
    try:
        from pyarrow import parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise UnmaskError(f"files from the hub need pyarrow (pip install 'unmask[data]'); or {_HINT}") from None
    return parquet.read_table(path).to_pylist()
