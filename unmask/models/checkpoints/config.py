"""Read a checkpoint's small files, and refuse values of its config.json that cannot be right."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError

Config = Mapping[str, Any]
MOST_BYTES = 2**28  # size of a file that is not weights
# The largest supported sizes: a config is read before its weights and must not decide how much memory is allocated.
LARGEST = {
    "layers": 1024,
    "heads": 4096,
    "kv_heads": 4096,
    "head": 2**16,
    "width": 2**17,
    "hidden": 2**20,
    "vocab": 2**22,
    "block": 2**16,
    "experts.count": 4096,
    "experts.chosen": 4096,
    "experts.groups": 4096,
    "experts.kept_groups": 4096,
    "experts.hidden": 2**20,
}


def positive_number(config: Config, *keys: str, kind: type = int, default: Any = None, most: int = 2**31) -> Any:
    """Return the value of the first of these keys that config.json sets."""
    for key in keys:
        value = config.get(key)
        if value is None:
            continue
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value <= 0 or kind(value) != value:
            expected = "whole number" if kind is int else "number"
            raise UnmaskError(f"{key} in config.json must be a positive {expected}, got {shown(value)}")
        if value > most:
            raise UnmaskError(f"{key} in config.json must be at most {most:,}, got {shown(value)}")
        return kind(value)
    if default is None:
        raise UnmaskError(f"config.json does not set {keys[0]}: it is not a complete checkpoint of this family")
    return default


def flag(config: Config, *keys: str) -> bool:
    """Return whether any of these keys is true."""
    values = {key: config.get(key) for key in keys if config.get(key) is not None}
    for key, value in values.items():
        if not isinstance(value, bool):
            raise UnmaskError(f"{key} in config.json must be true or false, got {shown(value)}")
    return any(values.values())


def table(config: Config, key: str) -> Config:
    """Return a setting that is itself an object; an empty one where it is missing or null."""
    value = config.get(key)
    if value is not None and not isinstance(value, dict):
        raise UnmaskError(f"{key} in config.json must be an object or null, got {shown(value)}")
    return value or {}


def require(config: Config, key: str, value: Any) -> None:
    """Refuse a different value than this one; a key that is missing or null passes."""
    actual = config.get(key)
    if actual is not None and actual != value:
        raise UnmaskError(f"{key}={shown(actual)} in config.json is not supported: only {value!r} is")


def class_names(config: Config) -> set[str]:
    """Return the model classes that `architectures` and `auto_map` name."""
    named = config.get("architectures") or ()
    auto = config.get("auto_map") or {}
    paths = [*named] if isinstance(named, list) else [named]
    if isinstance(auto, dict):
        paths += [auto[key] for key in auto if key.startswith("AutoModel")]
    return {path.rpartition(".")[2] for path in paths if isinstance(path, str)}


def shown(value: Any) -> str:
    """Return the value as Python writes it, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def read_json(path: Path, missing: Any = None) -> Any:
    """Return the JSON object in a file, or `missing`, if given, where there is no such file."""
    if not path.exists() and missing is not None:
        return missing
    try:
        content = json.loads(read_file(path))
    except FileNotFoundError:
        if not path.parent.exists():
            raise UnmaskError(f"there is no folder {str(path.parent)!r}: name the folder of a checkpoint") from None
        raise UnmaskError(f"{path.parent} has no {path.name}: it is not the folder of a checkpoint") from None
    except (ValueError, RecursionError) as error:  # ValueError also for numbers with thousands of digits
        raise UnmaskError(f"{path} cannot be read ({error}): download the file again") from None
    if not isinstance(content, dict):
        raise UnmaskError(f"{path} is not a JSON object: download the file again")
    return content


def read_file(path: Path) -> str:
    """Return the text of a regular file; reading from a pipe could block."""
    check_file(path)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnmaskError(f"{path} cannot be read ({error}): download the file again") from None


def check_file(path: Path) -> None:
    """Refuse what is not a regular file, and a file that is far too large unless it holds weights."""
    if not path.exists():
        raise FileNotFoundError(path)
    if not path.is_file():
        raise UnmaskError(f"{path} is not a file: download it again")
    if path.suffix != ".safetensors" and path.stat().st_size > MOST_BYTES:
        raise UnmaskError(f"{path} must have at most {MOST_BYTES} bytes, got {path.stat().st_size}: download it again")
