"""Tiny-A2D: small Qwen3 and Qwen2 models turned from causal to diffusion, as `mdlm` (full attention) or `bd3lm`.

The files of both kinds look alike. A checkpoint is block-causal if config.json sets `block_size`, or if its name says
`bd3lm`: then blocks have 32 positions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from unmask.models.checkpoints.config import Config
from unmask.models.families.family import Field, family
from unmask.models.families.qwen import QWEN2_SETTINGS, QWEN3_SETTINGS, QWEN_IDS, Qwen2, Qwen3
from unmask.models.network.transformer import Shape

IDS = {**QWEN_IDS, "<|mask|>": 151_669}
SPECIALS = {"eos_token": "<|im_end|>", "mask_token": "<|mask|>", "pad_token": "<|endoftext|>"}


def has_blocks(config: Config) -> bool:
    return config.get("block_size") is not None or "bd3lm" in str(config.get("_folder"))


def without_blocks(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: setting for key, setting in settings.items() if setting not in (Field("block"), Field("mask"))}


@family("a2d-qwen3")
class A2DQwen3(Qwen3):
    example: ClassVar = "dllm-hub/Qwen3-0.6B-diffusion-mdlm-v0.1"
    model_type = "a2d-qwen3"
    classes = ("A2DQwen3LMHeadModel",)
    settings: ClassVar = without_blocks(QWEN3_SETTINGS)
    published: ClassVar[Shape] = Shape(
        *(1024, 28, 16), hidden=3072, vocab=151_936, context=40_960, kv_heads=8, theta=1e6, eps=1e-6, tied=True
    )
    published = replace(published, head=128, qk_norm=True)
    mask = "<|mask|>"
    token_ids: ClassVar = IDS
    specials: ClassVar = SPECIALS

    def matches(self, config: Config) -> bool:
        return super().matches(config) and has_blocks(config) == (self.published.block is not None)


@family("a2d-qwen3-bd3lm")
class A2DQwen3Blocks(A2DQwen3):
    example: ClassVar = "dllm-hub/Qwen3-0.6B-diffusion-bd3lm-v0.1"
    settings: ClassVar = {**A2DQwen3.settings, "block_size": Field("block")}
    published = replace(A2DQwen3.published, block=32)


@family("a2d-qwen2")
class A2DQwen2(Qwen2):
    example: ClassVar = "dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1"
    model_type = "a2d-qwen2"
    classes = ("A2DQwen2LMHeadModel",)
    settings: ClassVar = without_blocks(QWEN2_SETTINGS)
    published: ClassVar[Shape] = Shape(
        *(896, 24, 14), hidden=4864, vocab=151_936, context=32_768, kv_heads=2, theta=1e6, eps=1e-6, tied=True
    )
    published = replace(published, qkv_bias=True)
    mask = "<|mask|>"
    token_ids: ClassVar = IDS
    specials: ClassVar = SPECIALS

    def matches(self, config: Config) -> bool:
        return super().matches(config) and has_blocks(config) == (self.published.block is not None)


@family("a2d-qwen2-bd3lm")
class A2DQwen2Blocks(A2DQwen2):
    example: ClassVar = "dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-bd3lm-v0.1"
    settings: ClassVar = {**A2DQwen2.settings, "block_size": Field("block")}
    published = replace(A2DQwen2.published, block=32)
