"""Families made from Qwen2.5 and Qwen3: SDAR, DreamReasoner, Fast-dLLM v2 and Tiny-A2D."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from unmask.models.checkpoints.config import Config, class_names
from unmask.models.families.family import Family, Field, family, llama_settings
from unmask.models.network.transformer import Shape


def qwen_shape(width: int, layers: int, heads: int, **more: Any) -> Shape:
    return Shape(width, layers, heads, **{"vocab": 151_936, "context": 32_768, "theta": 1e6, "eps": 1e-6, **more})


class Qwen(Family):
    """The base class of these families, not one itself."""

    ends = ("<|endoftext|>", "<|im_end|>")
    length = 256


class Qwen2(Qwen):
    """Models with biases on queries, keys and values, for which config.json has no key."""

    settings: ClassVar = llama_settings("attention_bias", "mask_token_id", use_sliding_window=False)


class Qwen3(Qwen):
    """Models with norms on the queries and keys of every head, whose width is a setting."""

    settings: ClassVar = llama_settings(
        "mask_token_id", use_sliding_window=False, attention_bias=False, head_dim=Field("head")
    )


@family("sdar")
class SDAR(Qwen3):
    """SDAR-Chat and TraDo (arXiv 2510.06303, 2509.06949): Qwen3 under a block-causal mask, in blocks of 4 and more.

    TraDo has SDAR's files. Files without `block_size` are those of blocks of 4.
    """

    example: ClassVar = "JetLM/SDAR-8B-Chat"
    model_type = "sdar"
    classes = ("SDARForCausalLM", "SDARModel")
    settings: ClassVar = {**Qwen3.settings, "mask_token_id": Field("mask"), "block_size": Field("block")}
    published: ClassVar[Shape] = qwen_shape(4096, 36, 32, hidden=12_288, kv_heads=8, qk_norm=True, block=4)
    mask = "<|MASK|>"
    mask_id = 151_669


@family("dream-reasoner")
class DreamReasoner(SDAR):
    """DreamReasoner-8B: Qwen3 under a block-causal mask. Its logits are not shifted, but its model type is `Dream`.

    Its model class distinguishes it from Dream or, where config.json names none, its `block_size`.
    """

    example: ClassVar = "Dream-org/DreamReasoner-8B"
    model_type = "Dream"
    classes = ("DreamForCausalLM",)
    published = replace(SDAR.published, block=32)

    def matches(self, config: Config) -> bool:
        return super().matches(config) and (bool(class_names(config)) or "block_size" in config)


@family("fast-dllm")
class FastDLLM(Qwen2):
    """Fast-dLLM v2, 1.5B and 7B (arXiv 2509.26328): Qwen2.5 under a block-causal mask, with shifted logits.

    The logits about a block's first position are those of the last position of the block before, which is then
    complete.
    """

    example: ClassVar = "Efficient-Large-Model/Fast_dLLM_v2_7B"
    model_type = "Fast_dLLM_Qwen"
    classes = ("Fast_dLLM_QwenForCausalLM", "Fast_dLLM_QwenModel")
    settings: ClassVar = {**Qwen2.settings, "bd_size": Field("block")}
    published = qwen_shape(3584, 28, 28, hidden=18_944, vocab=152_064, kv_heads=4, qkv_bias=True, block=32)
    mask = "|<MASK>|"
    mask_id = 151_665
    shifted = True


class A2D(Qwen):
    """Tiny-A2D: small Qwen models turned from causal to diffusion, as `mdlm` (full attention) or `bd3lm` (blocks).

    The files of both kinds look alike. A checkpoint is block-causal if config.json sets `block_size`, or if its name
    contains `bd3lm`: then blocks have 32 positions.
    """

    mask = "<|mask|>"

    def matches(self, config: Config) -> bool:
        blocks = config.get("block_size") is not None or "bd3lm" in str(config.get("_folder"))
        return super().matches(config) and blocks == (self.published.block is not None)


@family("a2d-qwen3")
class A2DQwen3(A2D, Qwen3):
    """Tiny-A2D from Qwen3 under full attention: small models turned from causal to diffusion (`mdlm`)."""

    example: ClassVar = "dllm-hub/Qwen3-0.6B-diffusion-mdlm-v0.1"
    model_type = "a2d-qwen3"
    classes = ("A2DQwen3LMHeadModel",)
    published: ClassVar[Shape] = qwen_shape(
        1024, 28, 16, hidden=3072, context=40_960, kv_heads=8, tied=True, head=128, qk_norm=True
    )


@family("a2d-qwen3-bd3lm")
class A2DQwen3Blocks(A2DQwen3):
    """Tiny-A2D from Qwen3 under a block-causal mask (`bd3lm`)."""

    example: ClassVar = "dllm-hub/Qwen3-0.6B-diffusion-bd3lm-v0.1"
    settings: ClassVar = {**A2DQwen3.settings, "block_size": Field("block")}
    published = replace(A2DQwen3.published, block=32)


@family("a2d-qwen2")
class A2DQwen2(A2D, Qwen2):
    """Tiny-A2D from Qwen2.5 under full attention: small models turned from causal to diffusion (`mdlm`)."""

    example: ClassVar = "dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1"
    model_type = "a2d-qwen2"
    classes = ("A2DQwen2LMHeadModel",)
    published: ClassVar[Shape] = qwen_shape(896, 24, 14, hidden=4864, kv_heads=2, tied=True, qkv_bias=True)


@family("a2d-qwen2-bd3lm")
class A2DQwen2Blocks(A2DQwen2):
    """Tiny-A2D from Qwen2.5 under a block-causal mask (`bd3lm`)."""

    example: ClassVar = "dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-bd3lm-v0.1"
    settings: ClassVar = {**A2DQwen2.settings, "block_size": Field("block")}
    published = replace(A2DQwen2.published, block=32)
