"""A checkpoint as its small files describe it, before any weight is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from unmask.errors import UnmaskError, nearest
from unmask.models.checkpoints.config import Config, class_names, read_json, shown
from unmask.models.checkpoints.tokenizer import Subwords, flat_ids, read_text
from unmask.models.families.family import Family, family
from unmask.models.network.transformer import Shape


class Defaults(NamedTuple):
    """Settings of a model that decoding needs before it is loaded."""

    length: int  # masks to write
    block: int | None  # positions per block of a block-causal model


@dataclass(frozen=True)
class Manifest:
    """Everything about a checkpoint but its weights."""

    family: Family
    shape: Shape
    text: Subwords
    mask_id: int
    eos: frozenset[int]
    length: int  # masks to write by default


def read_manifest(folder: Path) -> Manifest:
    """Read all small files of a checkpoint, each once."""
    config, generation = _configs(folder)
    kind = find_family(config, folder)
    shape, text = kind.shape(config), read_text(folder)
    mask_id = _mask_id([config, generation], text, kind, shape)
    ends = map(text.id, (text.specials.get("eos_token"), *kind.ends))
    eos = [_check_id("eos_token_id", number, shape) for number in flat_ids([config.get("eos_token_id"), *ends])]
    return Manifest(kind, shape, text, mask_id, frozenset(eos), _length(generation, kind))


def read_defaults(folder: Path) -> Defaults:
    """Read the defaults of a checkpoint from its config files, without its tokenizer."""
    config, generation = _configs(folder)
    kind = find_family(config, folder)
    return Defaults(_length(generation, kind), kind.shape(config).block)


def _check_id(key: str, number: Any, shape: Shape) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < shape.vocab:
        raise UnmaskError(f"{key} must be in the vocabulary, 0 to {shape.vocab - 1}, got {shown(number)}")
    return number


def find_family(config: Config, folder: Path) -> Family:
    """Return the one family that config.json belongs to."""
    families = {name: family.make(name) for name in family}
    matching = [name for name in families if families[name].matches(config)]
    if len(matching) > 1:
        raise UnmaskError(
            f"{folder} matches the families {' and '.join(matching)}: uninstall the package of one of them"
        )
    if matching:
        return families[matching[0]]
    model_type, classes = config.get("model_type"), sorted(class_names(config))
    types = sorted({kind.model_type for kind in families.values()})
    known = {name for kind in families.values() for name in kind.classes}
    hint = nearest(" ".join(classes), known) if model_type in types else nearest(str(model_type), types)
    raise UnmaskError(
        f"{folder} has model_type {model_type!r} and model classes {classes}, which no known family has ({hint}): "
        "load it yourself and pass it to unmask.wrap(module, tokenizer)"
    )


def _configs(folder: Path) -> tuple[Config, Config]:
    """Return config.json, with the folder (its name may decide the family), and generation_config.json."""
    config = {**read_json(folder / "config.json"), "_folder": str(folder.absolute())}
    return config, read_json(folder / "generation_config.json", {})


def _length(generation: Config, kind: Family) -> int:
    length = generation.get("max_new_tokens")
    return length if isinstance(length, int) and not isinstance(length, bool) and length > 0 else kind.length


def _mask_id(configs: list[Config], text: Subwords, kind: Family, shape: Shape) -> int:
    """Return the mask that config and tokenizer name, which must agree; else the one that the family uses."""
    stated = [*(config.get("mask_token_id") for config in configs), text.id(text.specials.get("mask_token"))]
    named = [_check_id("mask_token_id", number, shape) for number in stated if number is not None]
    ids = list(dict.fromkeys([*named, *([] if (known := text.id(kind.mask)) is None else [known])]))
    if len(ids) > 1:
        raise UnmaskError(
            f"the checkpoint names different masks, {' and '.join(map(str, ids))}: "
            "make mask_token_id in config.json and mask_token in tokenizer_config.json agree"
        )
    if not ids and kind.mask_id is not None and shape.vocab == kind.published.vocab:
        ids = [kind.mask_id]
    if not ids:
        raise UnmaskError(
            "the checkpoint does not say which token is the mask: set mask_token_id in config.json, "
            "or mask_token in tokenizer_config.json"
        )
    _check_special(ids[0], text, kind)
    return _check_id("mask_token_id", ids[0], shape)


def _check_special(mask_id: int, text: Subwords, kind: Family) -> None:
    """Refuse a mask that ordinary text can contain: it is not the token that was meant."""
    token = text.tokenizer.id_to_token(mask_id)
    if token is not None and token != kind.mask and mask_id not in text.tokenizer.get_added_tokens_decoder():
        raise UnmaskError(
            f"mask_token_id={mask_id} is the ordinary token {token!r} of the tokenizer: "
            "set mask_token_id in config.json to the id of the mask"
        )
