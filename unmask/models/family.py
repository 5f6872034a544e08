"""What defines a family of checkpoints: its config keys, weight names, special tokens and tokenizer files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from unmask.errors import UnmaskError
from unmask.models.transformer import Shape
from unmask.registry import Registry

Config = Mapping[str, Any]
DEFAULT_FAMILY = "llada"  # of checkpoints written without naming one


@dataclass(frozen=True)
class Names:
    """Weight names, without `.weight` or `.bias`; those of a layer follow its prefix. The defaults are Llama's."""

    embed: str = "model.embed_tokens"
    norm: str = "model.norm"
    head: str = "lm_head"
    layer: str = "model.layers.{}"  # with {} for its number
    qkv: tuple[str, str, str] = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
    out: str = "self_attn.o_proj"
    mlp: tuple[str, str, str] = ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
    norms: tuple[str, str] = ("input_layernorm", "post_attention_layernorm")  # before attention and before the MLP


@dataclass(frozen=True)
class Weight:
    """One published tensor, and the rows it fills of a parameter of the transformer."""

    name: str
    shape: tuple[int, ...]
    parameter: str
    start: int = 0


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

    model_type: ClassVar[str]  # in config.json
    classes: ClassVar[tuple[str, ...]]  # model classes named in config.json; the first is the one written
    # config.json in the order it is written: a Field, or the only value that the transformer supports.
    settings: ClassVar[dict[str, Any]] = LLAMA_SETTINGS
    published: ClassVar[Shape]  # the full size
    names: ClassVar[Names] = Names()
    mask: ClassVar[str]  # the mask token, where a tokenizer does not mark it as such
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
        for key, setting in self.settings.items():
            if not isinstance(setting, Field):
                require(config, key, setting)

        def read(*fields: str, kind: type = int, default: int | None = None) -> dict[str, Any]:
            return {field: positive_number(config, *self._keys(field), kind=kind, default=default) for field in fields}

        numbers = read("width", "layers", "heads", "hidden", "vocab", "context") | read("theta", "eps", kind=float)
        numbers |= read("kv_heads", default=numbers["heads"])
        flags = {field: any(config.get(key) for key in self._keys(field)) for field in ("qkv_bias", "tied")}
        self._check_divides(numbers, "heads", "width")
        self._check_divides(numbers, "kv_heads", "heads")
        require(config, "head_dim", numbers["width"] // numbers["heads"])
        return Shape(**numbers, **flags)

    def config(self, shape: Shape, mask: int, eos: int) -> dict[str, Any]:
        """The inverse of `shape`: config.json."""
        values = {**asdict(shape), "kv_heads": shape.kv_heads or shape.heads, "mask": mask, "eos": eos}
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
        names, width, kv = self.names, shape.width, shape.kv_width
        (gate, up, down), (attention_norm, mlp_norm) = names.mlp, names.norms
        yield Weight(f"{names.embed}.weight", (shape.vocab, width), "embed.weight")
        for number in range(shape.layers):
            published, ours = names.layer.format(number), f"layers.{number}"
            for part, start, rows in zip(names.qkv, (0, width, width + kv), (width, kv, kv), strict=True):
                yield Weight(f"{published}.{part}.weight", (rows, width), f"{ours}.qkv.weight", start)
                if shape.qkv_bias:
                    yield Weight(f"{published}.{part}.bias", (rows,), f"{ours}.qkv.bias", start)
            for part, size, parameter, start in (
                (names.out, (width, width), "out", 0),
                (gate, (shape.hidden, width), "gate_up", 0),
                (up, (shape.hidden, width), "gate_up", shape.hidden),
                (down, (width, shape.hidden), "down", 0),
                (attention_norm, (width,), "attention_norm", 0),
                (mlp_norm, (width,), "mlp_norm", 0),
            ):
                yield Weight(f"{published}.{part}.weight", size, f"{ours}.{parameter}.weight", start)
        yield Weight(f"{names.norm}.weight", (width,), "norm.weight")
        if not shape.tied:
            yield Weight(f"{names.head}.weight", (shape.vocab, width), "head.weight")

    def _keys(self, field: str) -> list[str]:
        return [key for key, setting in self.settings.items() if setting == Field(field)]

    def _check_divides(self, numbers: Mapping[str, int], part: str, whole: str) -> None:
        if numbers[whole] % numbers[part]:
            part_key, whole_key = self._keys(part)[0], self._keys(whole)[0]
            raise UnmaskError(f"in config.json {part_key}={numbers[part]} does not divide {whole_key}={numbers[whole]}")


family: Registry[Family] = Registry("family", "families")


def class_names(config: Config) -> set[str]:
    """The model classes that `architectures` and `auto_map` name."""
    auto = config.get("auto_map") or {}
    paths = [*(config.get("architectures") or ()), *(auto[key] for key in auto if key.startswith("AutoModel"))]
    return {path.rpartition(".")[2] for path in paths if isinstance(path, str)}


def positive_number(config: Config, *keys: str, kind: type = int, default: int | None = None) -> Any:
    """The first of these keys that config.json sets."""
    for key in keys:
        value = config.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or kind(value) != value or value <= 0:
            expected = "whole number" if kind is int else "number"
            raise UnmaskError(f"config.json has {key}={value!r}: it must be a positive {expected}")
        return kind(value)
    if default is None:
        raise UnmaskError(f"config.json does not set {keys[0]}: it is not a complete checkpoint of this family")
    return default


def require(config: Config, key: str, value: Any) -> None:
    """Refuse another value than this one; a key that is missing or null passes."""
    actual = config.get(key)
    if actual is not None and actual != value:
        raise UnmaskError(f"config.json has {key}={actual!r}, which is not supported: only {value!r} is")
