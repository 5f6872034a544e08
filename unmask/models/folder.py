"""A checkpoint's folder as its files describe it, before any weight is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError, nearest
from unmask.models.dream import DREAM
from unmask.models.family import Config, Family
from unmask.models.llada import LLADA
from unmask.models.text import Subwords, read_json, read_text
from unmask.models.transformer import Shape

FAMILIES: dict[str, Family] = {family.name: family for family in (LLADA, DREAM)}


@dataclass(frozen=True)
class Folder:
    path: Path
    family: Family
    shape: Shape
    text: Subwords
    mask_id: int
    eos: frozenset[int]
    length: int  # masks to write when nobody says how many

    @classmethod
    def read(cls, path: Path) -> Folder:
        config = read_json(path / "config.json")
        family = family_of(config, path)
        shape = family.shape(config)
        text = read_text(path)
        generation = read_json(path / "generation_config.json", {})
        length = generation.get("max_new_tokens")
        return cls(
            path,
            family,
            shape,
            text,
            _mask_id(config, generation, text, family, shape),
            _eos(config, text, family, shape),
            length if isinstance(length, int) and length > 0 else family.length,
        )


def family_of(config: Config, path: Path) -> Family:
    kind = config.get("model_type")
    for family in FAMILIES.values():
        if family.model_type == kind:
            return family
    known = [family.model_type for family in FAMILIES.values()]
    raise UnmaskError(
        f"{path} has model_type {kind!r}, which is no family known here ({nearest(str(kind), known)}): "
        "load it yourself and pass it to unmask.wrap(module, tokenizer)"
    )


def _mask_id(config: Config, generation: Config, text: Subwords, family: Family, shape: Shape) -> int:
    said = [table["mask_token_id"] for table in (config, generation) if table.get("mask_token_id") is not None]
    named = text.id(text.specials.get("mask_token"))
    found = [*said, *([named] if named is not None else [])]
    if not found:
        known = text.id(family.mask)
        found = [known] if known is not None else []
    if not found:
        raise UnmaskError(
            "the checkpoint does not say which token is the mask: set mask_token_id in config.json, "
            "or mask_token in tokenizer_config.json"
        )
    if len(set(found)) > 1:
        raise UnmaskError(
            f"the checkpoint names different masks, {' and '.join(map(str, dict.fromkeys(found)))}: "
            "make mask_token_id in config.json and mask_token in tokenizer_config.json agree"
        )
    return _in_vocabulary(found[0], "mask_token_id", shape)


def _eos(config: Config, text: Subwords, family: Family, shape: Shape) -> frozenset[int]:
    said = config.get("eos_token_id")
    ids = said if isinstance(said, list) else [said]
    ids += [text.id(token) for token in (text.specials.get("eos_token"), *family.ends)]
    return frozenset(_in_vocabulary(number, "eos_token_id", shape) for number in ids if number is not None)


def _in_vocabulary(number: Any, key: str, shape: Shape) -> int:
    if not isinstance(number, int) or not 0 <= number < shape.vocab:
        raise UnmaskError(f"{key}={number!r} is not in the vocabulary: it takes 0 to {shape.vocab - 1}")
    return number
