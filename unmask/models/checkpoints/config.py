"""Values of a checkpoint's config.json, each refused in a sentence where it is not what it must be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from unmask.errors import UnmaskError

Config = Mapping[str, Any]
# The largest sizes that are believed: a config is read before its weights, and must not decide how much is built.
LARGEST = {
    "layers": 1024,
    "experts": 4096,
    "heads": 4096,
    "kv_heads": 4096,
    "head": 2**16,
    "width": 2**17,
    "hidden": 2**20,
    "vocab": 2**22,
    "block": 2**16,
}


def positive_number(config: Config, *keys: str, kind: type = int, default: Any = None, most: int | None = None) -> Any:
    """The first of these keys that config.json sets; without `most` it may be anything up to 2³¹."""
    most = most or 2**31
    for key in keys:
        value = config.get(key)
        if value is None:
            continue
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value <= 0 or kind(value) != value:
            expected = "whole number" if kind is int else "number"
            raise UnmaskError(f"config.json has {key}={shown(value)}: it must be a positive {expected}")
        if value > most:
            raise UnmaskError(f"config.json has {key}={shown(value)}: at most {most:,} is supported")
        return kind(value)
    if default is None:
        raise UnmaskError(f"config.json does not set {keys[0]}: it is not a complete checkpoint of this family")
    return default


def flag(config: Config, *keys: str) -> bool:
    """Whether any of these keys is true."""
    values = {key: config.get(key) for key in keys if config.get(key) is not None}
    for key, value in values.items():
        if not isinstance(value, bool):
            raise UnmaskError(f"config.json has {key}={shown(value)}: it must be true or false")
    return any(values.values())


def table(config: Config, key: str) -> Config:
    """A setting that is an object of its own; empty where it is missing or null."""
    value = config.get(key)
    if value is not None and not isinstance(value, dict):
        raise UnmaskError(f"config.json has {key}={shown(value)}: it must be an object or null")
    return value or {}


def require(config: Config, key: str, value: Any) -> None:
    """Refuse another value than this one; a key that is missing or null passes."""
    actual = config.get(key)
    if actual is not None and actual != value:
        raise UnmaskError(f"config.json has {key}={shown(actual)}, which is not supported: only {value!r} is")


def class_names(config: Config) -> set[str]:
    """The model classes that `architectures` and `auto_map` name."""
    named = config.get("architectures") or ()
    auto = config.get("auto_map") or {}
    paths = [*named] if isinstance(named, list) else [named]
    if isinstance(auto, dict):
        paths += [auto[key] for key in auto if key.startswith("AutoModel")]
    return {path.rpartition(".")[2] for path in paths if isinstance(path, str)}


def shown(value: Any) -> str:
    """As Python writes it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
