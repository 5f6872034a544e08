"""What one family of checkpoints calls things: its config's keys, its weights' names, its special tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from unmask.errors import UnmaskError
from unmask.models.transformer import Shape

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Names:
    """Published names of the weights; those of a layer follow its prefix, and all end in .weight or .bias."""

    embed: str
    norm: str
    head: str
    layer: str  # with {} for its number
    q: str
    k: str
    v: str
    out: str
    gate: str
    up: str
    down: str
    attention_norm: str
    mlp_norm: str


@dataclass(frozen=True)
class Weight:
    """One published tensor, and the rows of our own parameter that it fills."""

    name: str
    shape: tuple[int, ...]
    parameter: str
    start: int = 0


@dataclass(frozen=True)
class Ids:
    """The special tokens of a checkpoint."""

    mask: int
    eos: int


@dataclass(frozen=True)
class Family:
    name: str
    model_type: str  # as config.json says it
    names: Names
    shape: Callable[[Config], Shape]
    config: Callable[[Shape, Ids], dict[str, Any]]  # the inverse of `shape`: config.json of a shape
    mask: str  # what the published tokenizers call the mask, where they do not mark it as such
    ends: tuple[str, ...]  # tokens that end an answer beside the one config.json names
    template: str  # the published chat template, for checkpoints we make
    shifted: bool = False  # the logits about position i are read at position i - 1
    length: int = 128  # masks to write when nobody says how many

    def weights(self, shape: Shape) -> Iterator[Weight]:
        names, width, kv = self.names, shape.width, shape.kv_width
        yield Weight(f"{names.embed}.weight", (shape.vocab, width), "embed.weight")
        for number in range(shape.layers):
            theirs, ours = names.layer.format(number), f"layers.{number}"
            starts = {names.q: (0, width), names.k: (width, kv), names.v: (width + kv, kv)}
            for part, (start, rows) in starts.items():
                yield Weight(f"{theirs}.{part}.weight", (rows, width), f"{ours}.qkv.weight", start)
                if shape.qkv_bias:
                    yield Weight(f"{theirs}.{part}.bias", (rows,), f"{ours}.qkv.bias", start)
            yield Weight(f"{theirs}.{names.out}.weight", (width, width), f"{ours}.out.weight")
            yield Weight(f"{theirs}.{names.gate}.weight", (shape.hidden, width), f"{ours}.gate_up.weight")
            yield Weight(f"{theirs}.{names.up}.weight", (shape.hidden, width), f"{ours}.gate_up.weight", shape.hidden)
            yield Weight(f"{theirs}.{names.down}.weight", (width, shape.hidden), f"{ours}.down.weight")
            yield Weight(f"{theirs}.{names.attention_norm}.weight", (width,), f"{ours}.attention_norm.weight")
            yield Weight(f"{theirs}.{names.mlp_norm}.weight", (width,), f"{ours}.mlp_norm.weight")
        yield Weight(f"{names.norm}.weight", (width,), "norm.weight")
        if not shape.tied:
            yield Weight(f"{names.head}.weight", (shape.vocab, width), "head.weight")


def number(config: Config, *keys: str, kind: type = int) -> Any:
    """The first of these keys that config.json sets."""
    for key in keys:
        value = config.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or kind(value) != value or value <= 0:
            raise UnmaskError(f"config.json has {key}={value!r}: it takes a positive {_SAID[kind]}")
        return kind(value)
    raise UnmaskError(f"config.json does not say {keys[0]}: it is not a whole checkpoint of this family")


def plain(config: Config, **expected: Any) -> None:
    """Refuse what our transformer does not compute, rather than compute something else. None means unset."""
    for key, value in expected.items():
        found = config.get(key)
        if found is not None and found != value:
            raise UnmaskError(f"config.json has {key}={found!r}, which is not supported: only {value!r} is")


def unquantised(config: Config) -> None:
    if config.get("quantization_config") or config.get("quantization"):
        raise UnmaskError("the checkpoint is quantised, which is not supported: use its float16 or bfloat16 original")


_SAID = {int: "whole number", float: "number"}
