"""LLaDA-MoE-7B-A1B, Base and Instruct (arXiv 2509.24389): a mixture of 64 experts under full attention.

Routed like OLMoE: softmax scores, the eight highest, not normalised. Queries and keys are normed head by head.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from unmask.errors import UnmaskError
from unmask.models.checkpoints.config import LARGEST, Config, positive_number, shown
from unmask.models.checkpoints.tokenizer_files import write_tokenizer_json
from unmask.models.checkpoints.weight_names import Names
from unmask.models.families.family import LLAMA_SETTINGS, Family, Field, family
from unmask.models.network.experts import Experts
from unmask.models.network.transformer import Shape


@family("llada-moe")
class LLaDAMoE(Family):
    example: ClassVar = "inclusionAI/LLaDA-MoE-7B-A1B-Instruct"
    model_type = "lladamoe"
    classes = ("LLaDAMoEModelLM", "LLaDAMoEModel")
    settings: ClassVar = {
        **{
            key: setting for key, setting in LLAMA_SETTINGS.items() if key not in ("intermediate_size", "mask_token_id")
        },
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
        *(2048, 16, 16),
        hidden=8192,
        vocab=157_184,
        context=8192,
        theta=50_000.0,
        qk_norm=True,
        experts=Experts(64, 8, 1024),
    )
    fixed: ClassVar = {"qk_norm": True}
    names = Names(
        shared=("shared_expert.gate_proj", "shared_expert.up_proj", "shared_expert.down_proj"),
    )
    mask = "<|mask|>"
    mask_id = 156_895
    ends = ("<|endoftext|>", "<|role_end|>")
    template = (
        "{% for message in messages %}"
        "{{ '<role>' + message['role'] + '</role>' + message['content'] + '<|role_end|>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<role>ASSISTANT</role>' }}{% endif %}"
    )
    token_ids: ClassVar = {
        "<|startoftext|>": 156_891,
        "<|endoftext|>": 156_892,
        "<|mask|>": 156_895,
        "<role>": 156_898,
        "</role>": 156_899,
        "<|role_end|>": 156_900,
    }
    specials: ClassVar = {
        "bos_token": "<|startoftext|>",
        "eos_token": "<|endoftext|>",
        "mask_token": "<|mask|>",
        "pad_token": "<|endoftext|>",
    }

    def shape(self, config: Config) -> Shape:
        """Dense layers, where there are some, come first."""
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

    def write_tokenizer(self, folder: Path, vocab: int) -> None:
        write_tokenizer_json(folder, self, vocab)


def check_experts(experts: Experts) -> Experts:
    """Refuses routing that cannot be."""
    if experts.count % experts.groups or experts.kept_groups > experts.groups:
        raise UnmaskError(
            f"config.json keeps {experts.kept_groups} of {experts.groups} groups of {experts.count} experts"
        )
    if experts.groups > 1 and experts.count // experts.groups < 2:
        raise UnmaskError(f"config.json has {experts.groups} groups of {experts.count} experts: a group needs two")
    most = experts.count // experts.groups * experts.kept_groups
    if experts.chosen > most:
        raise UnmaskError(f"config.json has num_experts_per_tok={experts.chosen}: it can be at most {most}")
    return experts


def _dense_layers(frequency: Any, layers: int) -> int:
    """How many layers have one MLP, from a list with a 0 for each of them and a 1 for every other layer."""
    if frequency is None or frequency == []:
        return 0
    ones = [1] * frequency.count(1) if isinstance(frequency, list) else []
    if not ones or frequency != [0] * (layers - len(ones)) + ones or len(frequency) != layers:
        raise UnmaskError(f"config.json has moe_layer_freq={shown(frequency)}: only zeros before ones are supported")
    return layers - len(ones)
