"""The definition of a family of checkpoints: its config keys, weight names and special tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from torch import Tensor

from unmask.errors import UnmaskError
from unmask.models.checkpoints.config import LARGEST, Config, class_names, flag, positive_number, require, table
from unmask.models.network.experts import Experts
from unmask.models.network.transformer import Shape
from unmask.registry import Registry

DEFAULT_FAMILY = "llada"  # the family of checkpoints that are written without naming one


@dataclass(frozen=True)
class Names:
    """Published tensor names without `.weight` or `.bias`, those in a layer without its prefix. Llama's by default."""

    embed: str = "model.embed_tokens"
    norm: str = "model.norm"
    head: str = "lm_head"
    layer: str = "model.layers.{}"  # {} is its number
    qkv: tuple[str, ...] = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")  # or one name for all three
    out: str = "self_attn.o_proj"
    mlp: tuple[str, str, str] = ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
    norms: tuple[str, str] = ("input_layernorm", "post_attention_layernorm")  # before attention and before the MLP
    qk_norms: tuple[str, str] = ("self_attn.q_norm", "self_attn.k_norm")
    router: str = "mlp.gate"
    router_bias: str = "mlp.gate.expert_bias"  # the full name
    expert: str = "mlp.experts.{}"  # {} is its number
    shared: str = "mlp.shared_experts"


@dataclass(frozen=True)
class Field:
    """A config key that holds this field of the Shape (`experts.` of its Experts), or the id of `mask` or `eos`."""

    name: str


def llama_settings(*without: str, **more: Any) -> dict[str, Any]:
    """Return the config keys of Llama except for some, and more of them, as `Family.settings` describes them."""
    settings: dict[str, Any] = {
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
    return {key: setting for key, setting in settings.items() if key not in without} | more


@dataclass(frozen=True)
class Family:
    """A kind of checkpoint. Subclass it in a file of `families/`, with `@family("name")` above the class."""

    example: ClassVar[str]  # hub id of a checkpoint
    model_type: ClassVar[str]  # `model_type` in config.json
    classes: ClassVar[tuple[str, ...]]  # model classes named in config.json; the first is the one written
    # config.json in the order it is written: a Field, or the only value that the transformer supports.
    settings: ClassVar[dict[str, Any]] = llama_settings()
    published: ClassVar[Shape]  # the full size; all checkpoints share those fields that no key holds
    names: ClassVar[Names] = Names()
    mask: ClassVar[str]  # the mask token, where a tokenizer does not mark it as such
    mask_id: ClassVar[int | None] = None  # the mask of published checkpoints, where neither config nor tokenizer has it
    ends: ClassVar[tuple[str, ...]]  # tokens that end an answer, besides those the checkpoint names
    shifted: ClassVar[bool] = False  # the logits about position i are at position i - 1
    length: ClassVar[int] = 128  # masks to write by default

    @property
    def name(self) -> str:
        return family.name(self)

    def matches(self, config: Config) -> bool:
        """Return whether config.json has this model type and, where it names model classes, one of these."""
        named = class_names(config)
        return config.get("model_type") == self.model_type and (not named or not named.isdisjoint(self.classes))

    def shape(self, config: Config) -> Shape:
        """Return the shape that config.json describes; refuse settings that the transformer does not implement."""
        if config.get("quantization_config") or config.get("quantization"):
            raise UnmaskError("a quantised checkpoint is not supported: use its float16 or bfloat16 original")
        config = rotary_settings(config)
        for key, setting in self.settings.items():
            if not isinstance(setting, Field):
                require(config, key, setting)
        sizes = {
            field: self._read(config, field) for field in ("width", "layers", "heads", "hidden", "vocab", "context")
        }
        sizes["kv_heads"] = self._read(config, "kv_heads", default=sizes["heads"])
        self._check_divides(sizes, "kv_heads", "heads")
        if self._keys("block"):
            sizes["block"] = self._read(config, "block", default=self.published.block)
        numbers = {field: self._read(config, field, kind=float) for field in ("theta", "eps")}
        flags = {field: flag(config, *keys) for field in ("qkv_bias", "tied") if (keys := self._keys(field))}
        head, experts = self._head(config, sizes), self._experts(config)
        return replace(self.published, **sizes, **numbers, **flags, head=head, experts=experts)

    def _read(self, config: Config, field: str, kind: type = int, default: Any = None) -> Any:
        return positive_number(config, *self._keys(field), kind=kind, default=default, most=LARGEST.get(field, 2**31))

    def _experts(self, config: Config) -> Experts | None:
        """Return the mixture with the sizes that config.json has."""
        if (known := self.published.experts) is None:
            return None
        sizes = {field: self._read(config, f"experts.{field}") for field in ("count", "chosen", "hidden")}
        for field in ("groups", "kept_groups"):
            sizes[field] = self._read(config, f"experts.{field}", default=getattr(known, field))
        return replace(known, **sizes, scale=self._read(config, "experts.scale", kind=float, default=known.scale))

    def _head(self, config: Config, numbers: Mapping[str, int]) -> int | None:
        """Return the width of a head; None where it is the width divided by the heads."""
        usual, left = divmod(numbers["width"], numbers["heads"])
        head = positive_number(config, "head_dim", default=usual, most=LARGEST["head"])
        if head != usual and not self._keys("head"):
            require(config, "head_dim", usual)
        if left and head == usual:
            self._check_divides(numbers, "heads", "width")
        if head % 2:
            raise UnmaskError(f"the width of a head in config.json must be even for rotary positions, got {head}")
        return None if head == usual else head

    def config(self, shape: Shape, mask: int, eos: int) -> dict[str, Any]:
        """Return the config.json of a shape: the inverse of `shape`."""
        values = {**self.fields(shape), "mask": mask, "eos": eos}
        settings = {
            key: values[setting.name] if isinstance(setting, Field) else setting
            for key, setting in self.settings.items()
        }
        return {"architectures": [self.classes[0]], "model_type": self.model_type, **settings}

    def fields(self, shape: Shape) -> dict[str, Any]:
        """Return the values of a shape that the keys of config.json hold."""
        fields = {**asdict(shape), "kv_heads": shape.kv_heads or shape.heads, "head": shape.head_width}
        return fields | {f"experts.{field}": value for field, value in (fields["experts"] or {}).items()}

    def weights(self, shape: Shape) -> Iterator[Weight]:
        """Yield every tensor that a checkpoint of this shape must have."""
        names = self.names
        yield Weight(f"{names.embed}.weight", (shape.vocab, shape.width), "embed.weight")
        for number in range(shape.layers):
            published, ours = names.layer.format(number), f"layers.{number}"
            for weight in _layer(names, shape, shape.experts_of(number)):
                yield Weight(f"{published}.{weight.name}", weight.shape, f"{ours}.{weight.parameter}", weight.start)
        yield Weight(f"{names.norm}.weight", (shape.width,), "norm.weight")
        if not shape.tied:
            yield Weight(f"{names.head}.weight", (shape.vocab, shape.width), "head.weight")

    def _keys(self, field: str) -> list[str]:
        return [key for key, setting in self.settings.items() if setting == Field(field)]

    def _check_divides(self, numbers: Mapping[str, int], part: str, whole: str) -> None:
        if numbers[whole] % numbers[part]:
            part_key, whole_key = self._keys(part)[0], self._keys(whole)[0]
            raise UnmaskError(f"in config.json {part_key}={numbers[part]} does not divide {whole_key}={numbers[whole]}")


family: Registry[Family] = Registry("family", "families")


def rotary_settings(config: Config) -> dict[str, Any]:
    """Return config.json with its rotary settings at the top, where newer files have a table; refuse scaled ones."""
    rotary = table(config, "rope_parameters")
    scaling = table(config, "rope_scaling") or rotary
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind != "default":
        raise UnmaskError(f"rotary positions scaled by {kind!r} in config.json are not supported: only 'default' is")
    return {**rotary, **{key: value for key, value in config.items() if value is not None and key != "rope_scaling"}}


@dataclass(frozen=True)
class Weight:
    """One published tensor and the rows of a parameter that it fills; the experts of a layer share a parameter."""

    name: str
    shape: tuple[int, ...]
    parameter: str
    start: int = 0

    def rows(self, parameters: Mapping[str, Tensor]) -> Tensor:
        whole = parameters[self.parameter]
        stacked = whole.flatten(0, 1) if whole.ndim == 3 else whole
        return stacked[self.start : self.start + self.shape[0]]


def _layer(names: Names, shape: Shape, experts: Experts | None) -> Iterator[Weight]:
    start = 0
    sizes = (shape.q_width, shape.kv_width, shape.kv_width)
    for name, size in zip(names.qkv, sizes if len(names.qkv) == 3 else (sum(sizes),), strict=True):
        yield Weight(f"{name}.weight", (size, shape.width), "qkv.weight", start)
        if shape.qkv_bias:
            yield Weight(f"{name}.bias", (size,), "qkv.bias", start)
        start += size
    yield Weight(f"{names.out}.weight", (shape.width, shape.q_width), "out.weight")
    for name, parameter in zip(names.norms, ("attention_norm", "mlp_norm"), strict=True):
        yield Weight(f"{name}.weight", (shape.width,), f"{parameter}.weight")
    if shape.qk_norm:
        for name, parameter in zip(names.qk_norms, ("q_norm", "k_norm"), strict=True):
            yield Weight(f"{name}.weight", (shape.head_width,), f"{parameter}.weight")
    if experts is None:
        yield from _mlp(names.mlp, shape.width, shape.hidden, "gate_up.weight", "down.weight")
    else:
        yield from _mixture(names, shape.width, experts)


def _mixture(names: Names, width: int, experts: Experts) -> Iterator[Weight]:
    yield Weight(f"{names.router}.weight", (experts.count, width), "mixture.router.weight")
    if experts.bias:
        yield Weight(names.router_bias, (experts.count,), "mixture.bias")
    for number in range(experts.count):
        expert = _gated(names.expert.format(number))
        yield from _mlp(expert, width, experts.hidden, "mixture.gate_up", "mixture.down", number)
    if experts.shared:
        gate_up, down = "mixture.shared_gate_up.weight", "mixture.shared_down.weight"
        yield from _mlp(_gated(names.shared), width, experts.shared, gate_up, down)


def _gated(prefix: str) -> tuple[str, str, str]:
    return f"{prefix}.gate_proj", f"{prefix}.up_proj", f"{prefix}.down_proj"


def _mlp(
    names: tuple[str, str, str], width: int, hidden: int, gate_up: str, down: str, number: int = 0
) -> Iterator[Weight]:
    """Yield the matrices of an MLP, the one of this number in the parameters `gate_up` and `down`."""
    start = 2 * hidden * number
    yield Weight(f"{names[0]}.weight", (hidden, width), gate_up, start)
    yield Weight(f"{names[1]}.weight", (hidden, width), gate_up, start + hidden)
    yield Weight(f"{names[2]}.weight", (width, hidden), down, width * number)
