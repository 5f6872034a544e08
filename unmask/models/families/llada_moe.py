"""Families of LLaDA with a mixture of experts: LLaDA-MoE and LLaDA2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from unmask.errors import UnmaskError
from unmask.models.checkpoints.config import LARGEST, Config, positive_number, shown
from unmask.models.families.family import Family, Field, Names, family, llama_settings, rotary_settings
from unmask.models.network.experts import Experts
from unmask.models.network.transformer import Shape

EXPERTS = Experts(  # of LLaDA2
    256, 8, 512, shared=512, dense=1, scoring="sigmoid", bias=True, groups=8, kept_groups=4, normalised=True, scale=2.5
)


@family("llada-moe")
class LLaDAMoE(Family):
    """LLaDA-MoE-7B-A1B, Base and Instruct (arXiv 2509.24389): a mixture of 64 experts under full attention.

    The router is that of OLMoE: softmax scores, the eight highest, not normalised. Queries and keys have norms.
    """

    example: ClassVar = "inclusionAI/LLaDA-MoE-7B-A1B-Instruct"
    model_type = "lladamoe"
    classes = ("LLaDAMoEModelLM", "LLaDAMoEModel")
    settings: ClassVar = {
        **llama_settings("intermediate_size", "mask_token_id"),
        "dense_intermediate_size": Field("hidden"),
        "attention_bias": False,
        "qk_layernorm": True,
        "clip_qkv": None,
        "partial_rotary_factor": 1,
        "moe_router_enable_expert_bias": False,
        "moe_router_score_function": "softmax",
        "routed_scaling_factor": 1,
        "num_experts": Field("experts.count"),
        "num_experts_per_tok": Field("experts.chosen"),
        "expert_intermediate_size": Field("experts.hidden"),
        "shared_expert_intermediate_size": Field("experts.shared"),
        "moe_layer_freq": Field("mixtures"),
    }
    published = Shape(
        2048, 16, 16, hidden=8192, vocab=157_184, context=8192, theta=5e4, qk_norm=True, experts=Experts(64, 8, 1024)
    )
    names = Names(shared="shared_expert")
    mask = "<|mask|>"
    mask_id = 156_895
    ends = ("<|endoftext|>", "<|role_end|>")

    def shape(self, config: Config) -> Shape:
        """Return the shape; dense layers, where there are some, come first."""
        shape = super().shape({"dense_intermediate_size": config.get("expert_intermediate_size"), **config})
        shared = positive_number(config, "shared_expert_intermediate_size", default=0, most=LARGEST["experts.hidden"])
        return with_experts(shape, shared=shared, dense=_dense_layers(config.get("moe_layer_freq"), shape.layers))

    def fields(self, shape: Shape) -> dict[str, Any]:
        assert shape.experts is not None
        mixtures = [int(shape.experts_of(layer) is not None) for layer in range(shape.layers)]
        return super().fields(shape) | {"experts.shared": shape.experts.shared or None, "mixtures": mixtures}


@family("llada2")
class LLaDA2(Family):
    """LLaDA2.0-mini and 2.1-mini, and the larger -flash (arXiv 2512.15745): block-causal, a mixture of 256 experts.

    Router scores are sigmoids; an expert's bias only affects which are chosen: the eight best experts of the four best
    of eight groups. There is one shared expert and a dense first layer. Half of a head is rotated by its position.
    """

    example: ClassVar = "inclusionAI/LLaDA2.0-mini"
    model_type = "llada2_moe"
    classes = ("LLaDA2MoeModelLM", "LLaDA2MoeModel")
    settings: ClassVar = {
        **llama_settings("attention_bias", "mask_token_id"),
        "head_dim": Field("head"),
        "block_size": Field("block"),
        "use_qkv_bias": False,
        "use_bias": False,
        "use_qk_norm": True,
        "norm_head": False,
        "use_sliding_window": False,
        "num_experts": Field("experts.count"),
        "num_experts_per_tok": Field("experts.chosen"),
        "moe_intermediate_size": Field("experts.hidden"),
        "num_shared_experts": Field("shared_experts"),
        "first_k_dense_replace": Field("experts.dense"),
        "n_group": Field("experts.groups"),
        "topk_group": Field("experts.kept_groups"),
        "routed_scaling_factor": Field("experts.scale"),
        "partial_rotary_factor": Field("rotated_part"),
    }
    published = Shape(
        width=2048,
        layers=20,
        heads=16,
        hidden=5120,
        vocab=157_184,
        context=32_768,
        kv_heads=4,
        theta=600_000.0,
        eps=1e-6,
        qk_norm=True,
        rotary=64,
        block=32,
        experts=EXPERTS,
    )
    names = Names(
        embed="model.word_embeddings",
        qkv=("attention.query_key_value",),
        out="attention.dense",
        qk_norms=("attention.query_layernorm", "attention.key_layernorm"),
    )
    mask, mask_id, ends = LLaDAMoE.mask, LLaDAMoE.mask_id, LLaDAMoE.ends
    length = 256

    def matches(self, config: Config) -> bool:
        """Accept also the model type of copies of 2.1, which have the same layers."""
        renamed = config.get("model_type") == "llada21_moe"
        return super().matches({**config, "model_type": self.model_type} if renamed else config)

    def shape(self, config: Config) -> Shape:
        for key in ("use_bias", "use_qk_norm"):
            if config.get(key) is None:  # the published class would then have biases
                raise UnmaskError(f"config.json does not set {key}: it is not a complete checkpoint of this family")
        config = rotary_settings(config)
        shape = super().shape(config)
        factor = positive_number(config, "partial_rotary_factor", kind=float, default=0.5, most=1)
        rotary = int(shape.head_width * factor)
        if rotary < 2 or rotary % 2:
            raise UnmaskError(
                f"partial_rotary_factor in config.json must rotate an even width of a head, "
                f"got {shown(factor)} of {shape.head_width}"
            )
        assert shape.experts is not None
        shared = _count(config, "num_shared_experts", LARGEST["experts.count"]) * shape.experts.hidden
        dense = _count(config, "first_k_dense_replace", shape.layers)
        normalised = shape.experts.chosen > 1
        return with_experts(replace(shape, rotary=rotary), shared=shared, dense=dense, normalised=normalised)

    def fields(self, shape: Shape) -> dict[str, Any]:
        assert shape.experts is not None
        shared, rotated = shape.experts.shared // shape.experts.hidden, shape.rotary or shape.head_width
        return super().fields(shape) | {"shared_experts": shared, "rotated_part": rotated / shape.head_width}


def with_experts(shape: Shape, **changes: Any) -> Shape:
    """Return the shape with changes to its experts; refuse impossible routing."""
    assert shape.experts is not None
    experts = replace(shape.experts, **changes)
    size = experts.count // experts.groups  # experts per group
    if experts.count % experts.groups or experts.kept_groups > experts.groups:
        raise UnmaskError(
            f"n_group in config.json must divide num_experts={experts.count} and be at least "
            f"topk_group={experts.kept_groups}, got {experts.groups}"
        )
    if experts.groups > 1 and size < 2:
        raise UnmaskError(f"n_group in config.json must be at most {experts.count // 2}, got {experts.groups}")
    if experts.chosen > (most := size * experts.kept_groups):
        raise UnmaskError(f"num_experts_per_tok in config.json must be at most {most}, got {experts.chosen}")
    return replace(shape, experts=experts)


def _dense_layers(frequency: Any, layers: int) -> int:
    """Return how many layers have one MLP, from a list with a 0 for each of them and a 1 for every other layer."""
    if frequency is None or frequency == []:
        return 0
    dense = frequency.count(0) if isinstance(frequency, list) else layers
    if dense >= layers or frequency != [0] * dense + [1] * (layers - dense):
        raise UnmaskError(f"moe_layer_freq in config.json must have zeros before ones, got {shown(frequency)}")
    return dense


def _count(config: Config, key: str, most: int) -> int:
    """Return a number that may be 0."""
    return 0 if config.get(key) in (None, 0) else positive_number(config, key, most=most)
