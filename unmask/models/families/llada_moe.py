"""Families of LLaDA with a mixture of experts: LLaDA-MoE and LLaDA2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from unmask.errors import UnmaskError
from unmask.models.checkpoints.config import LARGEST, Config, positive_number, shown
from unmask.models.families.family import Family, Field, Names, family, llama_settings, rotary_settings
from unmask.models.network.experts import Experts
from unmask.models.network.transformer import Shape


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
    }
    published = Shape(
        width=2048,
        layers=16,
        heads=16,
        hidden=8192,
        vocab=157_184,
        context=8192,
        theta=50_000.0,
        qk_norm=True,
        experts=Experts(count=64, chosen=8, hidden=1024),
    )
    fixed: ClassVar = {"qk_norm": True}
    names = Names(shared="shared_expert")
    mask = "<|mask|>"
    mask_id = 156_895
    ends = ("<|endoftext|>", "<|role_end|>")

    def shape(self, config: Config) -> Shape:
        """Return the shape; dense layers, where there are some, come first."""
        config = {"dense_intermediate_size": config.get("expert_intermediate_size"), **config}
        shape = super().shape(config)
        experts = Experts(
            positive_number(config, "num_experts", most=LARGEST["experts"]),
            positive_number(config, "num_experts_per_tok", most=LARGEST["experts"]),
            positive_number(config, "expert_intermediate_size", most=LARGEST["hidden"]),
            shared=positive_number(config, "shared_expert_intermediate_size", default=0, most=LARGEST["hidden"]),
            dense=_dense_layers(config.get("moe_layer_freq"), shape.layers),
        )
        return replace(shape, experts=check_experts(experts))

    def config(self, shape: Shape, mask: int, eos: int) -> dict[str, Any]:
        experts = shape.experts
        assert experts is not None
        return super().config(shape, mask, eos) | {
            "num_experts": experts.count,
            "num_experts_per_tok": experts.chosen,
            "expert_intermediate_size": experts.hidden,
            "shared_expert_intermediate_size": experts.shared or None,
            "moe_layer_freq": [0] * experts.dense + [1] * (shape.layers - experts.dense),
        }


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
        experts=Experts(
            count=256,
            chosen=8,
            hidden=512,
            shared=512,
            dense=1,
            scoring="sigmoid",
            bias=True,
            groups=8,
            kept_groups=4,
            normalised=True,
            scale=2.5,
        ),
    )
    names = Names(
        embed="model.word_embeddings",
        qkv=("attention.query_key_value",),
        out="attention.dense",
        qk_norms=("attention.query_layernorm", "attention.key_layernorm"),
    )
    fixed: ClassVar = {"qk_norm": True}
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
        return replace(shape, rotary=rotary, experts=check_experts(self._experts(config, shape)))

    def _experts(self, config: Config, shape: Shape) -> Experts:
        hidden = positive_number(config, "moe_intermediate_size", most=LARGEST["hidden"])
        many = LARGEST["experts"]
        return Experts(
            positive_number(config, "num_experts", most=many),
            positive_number(config, "num_experts_per_tok", most=many),
            hidden,
            shared=_count(config, "num_shared_experts", many) * hidden,
            dense=_count(config, "first_k_dense_replace", shape.layers),
            scoring="sigmoid",
            bias=True,
            groups=positive_number(config, "n_group", default=8, most=many),
            kept_groups=positive_number(config, "topk_group", default=4, most=many),
            normalised=positive_number(config, "num_experts_per_tok") > 1,
            scale=positive_number(config, "routed_scaling_factor", kind=float, default=2.5),
        )

    def config(self, shape: Shape, mask: int, eos: int) -> dict[str, Any]:
        experts = shape.experts
        assert experts is not None
        return super().config(shape, mask, eos) | {
            "num_experts": experts.count,
            "num_experts_per_tok": experts.chosen,
            "moe_intermediate_size": experts.hidden,
            "num_shared_experts": experts.shared // experts.hidden,
            "first_k_dense_replace": experts.dense,
            "n_group": experts.groups,
            "topk_group": experts.kept_groups,
            "routed_scaling_factor": experts.scale,
            "partial_rotary_factor": (shape.rotary or shape.head_width) / shape.head_width,
        }


def check_experts(experts: Experts) -> Experts:
    """Return the experts; refuse impossible routing."""
    if experts.count % experts.groups or experts.kept_groups > experts.groups:
        raise UnmaskError(
            f"n_group in config.json must divide num_experts={experts.count} and be at least "
            f"topk_group={experts.kept_groups}, got {experts.groups}"
        )
    if experts.groups > 1 and experts.count // experts.groups < 2:
        raise UnmaskError(f"n_group in config.json must be at most {experts.count // 2}, got {experts.groups}")
    most = experts.count // experts.groups * experts.kept_groups
    if experts.chosen > most:
        raise UnmaskError(f"num_experts_per_tok in config.json must be at most {most}, got {experts.chosen}")
    return experts


def _dense_layers(frequency: Any, layers: int) -> int:
    """Return how many layers have one MLP, from a list with a 0 for each of them and a 1 for every other layer."""
    if frequency is None or frequency == []:
        return 0
    ones = [1] * frequency.count(1) if isinstance(frequency, list) else []
    if not ones or frequency != [0] * (layers - len(ones)) + ones or len(frequency) != layers:
        raise UnmaskError(f"moe_layer_freq in config.json must have zeros before ones, got {shown(frequency)}")
    return layers - len(ones)


def _count(config: Config, key: str, most: int) -> int:
    """Return a number that may be 0."""
    return 0 if config.get(key) in (None, 0) else positive_number(config, key, most=most)
