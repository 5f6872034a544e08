"""What defines a family of checkpoints: its config keys, weight names, special tokens and tokenizer files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from unmask.errors import UnmaskError
from unmask.models.checkpoints.config import LARGEST, Config, class_names, flag, positive_number, require, table
from unmask.models.checkpoints.weight_names import Names, Weight, published_weights
from unmask.models.network.transformer import Shape
from unmask.registry import Registry

DEFAULT_FAMILY = "llada"  # of checkpoints written without naming one


@dataclass(frozen=True)
class Field:
    """In `Family.settings`: the key holds this field of the Shape, or the id of the `mask` or `eos` token."""

    name: str


LLAMA_SETTINGS: dict[str, Any] = {
    "hidden_size": Field("width"),
    "num_hidden_layers": Field("layers"),
    "num_attention_heads": Field("heads"),
    "num_key_value_heads": Field("kv_heads"),
    "intermediate_size": Field("hidden"),
    "vocab_size": Field("vocab"),
    "max_position_embeddings": Field("context"),
    "rope_theta": Field("theta"),
    "rope_scaling": None,
    "rms_norm_eps": Field("eps"),
    "tie_word_embeddings": Field("tied"),
    "mask_token_id": Field("mask"),
    "eos_token_id": Field("eos"),
    "bos_token_id": Field("eos"),
    "pad_token_id": Field("eos"),
    "attention_bias": Field("qkv_bias"),
    "hidden_act": "silu",
}


@dataclass(frozen=True)
class Family:
    """Subclass it in one file of `families/`, with `@family("name")` above the class."""

    example: ClassVar[str]  # the hub id of a checkpoint
    model_type: ClassVar[str]  # in config.json
    classes: ClassVar[tuple[str, ...]]  # model classes named in config.json; the first is the one written
    # config.json in the order it is written: a Field, or the only value that the transformer supports.
    settings: ClassVar[dict[str, Any]] = LLAMA_SETTINGS
    published: ClassVar[Shape]  # the full size
    names: ClassVar[Names] = Names()
    fixed: ClassVar[dict[str, Any]] = {}  # fields of the Shape that all checkpoints of the family share
    mask: ClassVar[str]  # the mask token, where a tokenizer does not mark it as such
    mask_id: ClassVar[int | None] = None  # of published checkpoints, where neither config nor tokenizer names it
    ends: ClassVar[tuple[str, ...]]  # tokens that end an answer, besides those the checkpoint names
    template: ClassVar[str]  # the published chat template, for random checkpoints
    token_ids: ClassVar[dict[str, int]]  # special tokens of random checkpoints at full size
    specials: ClassVar[dict[str, str]]  # special_tokens_map.json of random checkpoints
    shifted: ClassVar[bool] = False  # the logits about position i are at position i - 1
    length: ClassVar[int] = 128  # masks to write by default

    @property
    def name(self) -> str:
        return family.name(self)

    def matches(self, config: Config) -> bool:
        """Whether config.json has this model type and, where it names model classes, one of these."""
        named = class_names(config)
        return config.get("model_type") == self.model_type and (not named or not named.isdisjoint(self.classes))

    def shape(self, config: Config) -> Shape:
        """Refuses settings that the transformer does not implement."""
        if config.get("quantization_config") or config.get("quantization"):
            raise UnmaskError("a quantised checkpoint is not supported: use its float16 or bfloat16 original")
        config = rotary_settings(config)
        for key, setting in self.settings.items():
            if not isinstance(setting, Field):
                require(config, key, setting)

        def read(*fields: str, kind: type = int, default: Any = None) -> dict[str, Any]:
            return {
                field: positive_number(config, *self._keys(field), kind=kind, default=default, most=LARGEST.get(field))
                for field in fields
            }

        numbers = read("width", "layers", "heads", "hidden", "vocab", "context")
        numbers |= read("theta", "eps", kind=float) | read("kv_heads", default=numbers["heads"])
        self._check_divides(numbers, "kv_heads", "heads")
        if self._keys("block"):
            numbers |= read("block", default=self.published.block)
        flags = {field: flag(config, *self._keys(field)) for field in ("qkv_bias", "tied")}
        return Shape(**{**numbers, **flags, **self.fixed, "head": self._head(config, numbers)})

    def _head(self, config: Config, numbers: Mapping[str, int]) -> int | None:
        """The width of a head, where it is not the width divided by the heads."""
        usual, left = divmod(numbers["width"], numbers["heads"])
        head = positive_number(config, "head_dim", default=usual, most=LARGEST["head"])
        if head != usual and not self._keys("head"):
            require(config, "head_dim", usual)
        if left and head == usual:
            self._check_divides(numbers, "heads", "width")
        if head % 2:
            raise UnmaskError(f"config.json asks for heads of width {head}, half of which would be turned: it is odd")
        return None if head == usual else head

    def config(self, shape: Shape, mask: int, eos: int) -> dict[str, Any]:
        """The inverse of `shape`: config.json."""
        values = {**asdict(shape), "kv_heads": shape.kv_heads or shape.heads, "mask": mask, "eos": eos}
        values["head"] = shape.head_width
        settings = {
            key: values[setting.name] if isinstance(setting, Field) else setting
            for key, setting in self.settings.items()
        }
        return {"architectures": [self.classes[0]], "model_type": self.model_type, **settings}

    def ids(self, vocab: int) -> dict[str, int]:
        """Special tokens of a random checkpoint; in a vocabulary too small for the full-size ids, its last ids."""
        if vocab > max(self.token_ids.values()):
            return self.token_ids
        return {token: number for number, token in enumerate(self.token_ids, start=vocab - len(self.token_ids))}

    def write_tokenizer(self, folder: Path, vocab: int) -> None:
        """The tokenizer files of a random checkpoint, as the family publishes them."""
        raise UnmaskError(f"{type(self).__name__} has no write_tokenizer: random checkpoints of it cannot be made")

    def weights(self, shape: Shape) -> Iterator[Weight]:
        return published_weights(self.names, shape)

    def _keys(self, field: str) -> list[str]:
        return [key for key, setting in self.settings.items() if setting == Field(field)]

    def _check_divides(self, numbers: Mapping[str, int], part: str, whole: str) -> None:
        if numbers[whole] % numbers[part]:
            part_key, whole_key = self._keys(part)[0], self._keys(whole)[0]
            raise UnmaskError(f"in config.json {part_key}={numbers[part]} does not divide {whole_key}={numbers[whole]}")


family: Registry[Family] = Registry("family", "families")


def rotary_settings(config: Config) -> dict[str, Any]:
    """config.json with its rotary settings at the top: newer files keep them in a table. Scaled ones are refused."""
    rotary = table(config, "rope_parameters")
    scaling = table(config, "rope_scaling") or rotary
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind != "default":
        raise UnmaskError(f"config.json scales rotary positions ({kind!r}): only 'default' is supported")
    return {**rotary, **{key: value for key, value in config.items() if value is not None and key != "rope_scaling"}}
