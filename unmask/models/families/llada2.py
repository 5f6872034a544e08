"""LLaDA2.0-mini and 2.1-mini, and the larger -flash (arXiv 2512.15745): block-causal, a mixture of 256 experts.

Sigmoid scores, of which an expert's bias decides only the choice; the eight best experts of the four best of eight
groups; one shared expert; a dense first layer. Half of a head is turned by its position.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from unmask.errors import UnmaskError
from unmask.models.checkpoints.config import LARGEST, Config, positive_number, shown
from unmask.models.checkpoints.weight_names import Names
from unmask.models.families.family import LLAMA_SETTINGS, Field, family, rotary_settings
from unmask.models.families.llada_moe import LLaDAMoE, check_experts
from unmask.models.network.experts import Experts
from unmask.models.network.transformer import Shape


@family("llada2")
class LLaDA2(LLaDAMoE):
    example: ClassVar = "inclusionAI/LLaDA2.0-mini"
    model_type = "llada2_moe"
    classes = ("LLaDA2MoeModelLM", "LLaDA2MoeModel")
    settings: ClassVar = {
        **{key: setting for key, setting in LLAMA_SETTINGS.items() if key not in ("attention_bias", "mask_token_id")},
        "head_dim": Field("head"),
        "block_size": Field("block"),
        "use_qkv_bias": False,
        "use_bias": False,
        "use_qk_norm": True,
        "norm_head": False,
        "use_sliding_window": False,
    }
    published = Shape(
        *(2048, 20, 16),
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
            *(256, 8, 512),
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
    length = 256

    def matches(self, config: Config) -> bool:
        """Copies of 2.1 have a model type of their own, and the same layers."""
        renamed = config.get("model_type") == "llada21_moe"
        return super().matches({**config, "model_type": self.model_type} if renamed else config)

    def shape(self, config: Config) -> Shape:
        for key in ("use_bias", "use_qk_norm"):
            if config.get(key) is None:  # the published class has biases then
                raise UnmaskError(f"config.json does not set {key}: it is not a complete checkpoint of this family")
        config = rotary_settings(config)
        shape = super(LLaDAMoE, self).shape(config)
        factor = positive_number(config, "partial_rotary_factor", kind=float, default=0.5, most=1)
        rotary = int(shape.head_width * factor)
        if rotary < 2 or rotary % 2:
            raise UnmaskError(f"config.json has partial_rotary_factor={shown(factor)}: it turns {rotary} of a head")
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
        return super(LLaDAMoE, self).config(shape, mask, eos) | {
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


def _count(config: Config, key: str, most: int) -> int:
    """A number that may be 0."""
    return 0 if config.get(key) in (None, 0) else positive_number(config, key, most=most)
