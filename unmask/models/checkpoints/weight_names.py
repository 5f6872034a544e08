"""How a family names its published tensors, and which part of the transformer each of them fills."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torch import Tensor

from unmask.models.network.experts import Experts
from unmask.models.network.transformer import Shape


@dataclass(frozen=True)
class Names:
    """Weight names, without `.weight` or `.bias`; those of a layer follow its prefix. The defaults are Llama's."""

    embed: str = "model.embed_tokens"
    norm: str = "model.norm"
    head: str = "lm_head"
    layer: str = "model.layers.{}"  # with {} for its number
    qkv: tuple[str, ...] = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")  # or one name for all three
    out: str = "self_attn.o_proj"
    mlp: tuple[str, str, str] = ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
    norms: tuple[str, str] = ("input_layernorm", "post_attention_layernorm")  # before attention and before the MLP
    qk_norms: tuple[str, str] = ("self_attn.q_norm", "self_attn.k_norm")
    router: str = "mlp.gate"
    router_bias: str = "mlp.gate.expert_bias"  # in full
    expert: tuple[str, str, str] = (  # with {} for its number
        "mlp.experts.{}.gate_proj",
        "mlp.experts.{}.up_proj",
        "mlp.experts.{}.down_proj",
    )
    shared: tuple[str, str, str] = (
        "mlp.shared_experts.gate_proj",
        "mlp.shared_experts.up_proj",
        "mlp.shared_experts.down_proj",
    )


@dataclass(frozen=True)
class Weight:
    """One published tensor, and the rows it fills of a parameter; the rows of experts follow one another."""

    name: str
    shape: tuple[int, ...]
    parameter: str
    start: int = 0

    def rows(self, parameters: Mapping[str, Tensor]) -> Tensor:
        whole = parameters[self.parameter]
        stacked = whole.flatten(0, 1) if whole.ndim == 3 else whole
        return stacked[self.start : self.start + self.shape[0]]


def published_weights(names: Names, shape: Shape) -> Iterator[Weight]:
    yield Weight(f"{names.embed}.weight", (shape.vocab, shape.width), "embed.weight")
    for number in range(shape.layers):
        experts = shape.experts_of(number)
        mlp = _mlp(names.mlp, shape.width, shape.hidden) if experts is None else _mixture(names, shape.width, experts)
        for weight in (*_attention(names, shape), *mlp):
            published, ours = names.layer.format(number), f"layers.{number}"
            yield Weight(f"{published}.{weight.name}", weight.shape, f"{ours}.{weight.parameter}", weight.start)
    yield Weight(f"{names.norm}.weight", (shape.width,), "norm.weight")
    if not shape.tied:
        yield Weight(f"{names.head}.weight", (shape.vocab, shape.width), "head.weight")


def _attention(names: Names, shape: Shape) -> Iterator[Weight]:
    q, kv = shape.q_width, shape.kv_width
    sizes = (q, kv, kv) if len(names.qkv) == 3 else (q + 2 * kv,)
    start = 0
    for name, size in zip(names.qkv, sizes, strict=True):
        yield Weight(f"{name}.weight", (size, shape.width), "qkv.weight", start)
        if shape.qkv_bias:
            yield Weight(f"{name}.bias", (size,), "qkv.bias", start)
        start += size
    yield Weight(f"{names.out}.weight", (shape.width, q), "out.weight")
    for name, parameter in zip(names.norms, ("attention_norm", "mlp_norm"), strict=True):
        yield Weight(f"{name}.weight", (shape.width,), f"{parameter}.weight")
    if shape.qk_norm:
        for name, parameter in zip(names.qk_norms, ("q_norm", "k_norm"), strict=True):
            yield Weight(f"{name}.weight", (shape.head_width,), f"{parameter}.weight")


def _mlp(names: tuple[str, str, str], width: int, hidden: int, prefix: str = "") -> Iterator[Weight]:
    gate, up, down = names
    yield Weight(f"{gate}.weight", (hidden, width), f"{prefix}gate_up.weight")
    yield Weight(f"{up}.weight", (hidden, width), f"{prefix}gate_up.weight", hidden)
    yield Weight(f"{down}.weight", (width, hidden), f"{prefix}down.weight")


def _mixture(names: Names, width: int, experts: Experts) -> Iterator[Weight]:
    yield Weight(f"{names.router}.weight", (experts.count, width), "mixture.router.weight")
    if experts.bias:
        yield Weight(names.router_bias, (experts.count,), "mixture.bias")
    hidden = experts.hidden
    for number in range(experts.count):
        gate, up, down = (name.format(number) for name in names.expert)
        first = 2 * hidden * number
        yield Weight(f"{gate}.weight", (hidden, width), "mixture.gate_up", first)
        yield Weight(f"{up}.weight", (hidden, width), "mixture.gate_up", first + hidden)
        yield Weight(f"{down}.weight", (width, hidden), "mixture.down", width * number)
    if experts.shared:
        yield from _mlp(names.shared, width, experts.shared, "mixture.shared_")
