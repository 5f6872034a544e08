"""SDAR-Chat and TraDo (arXiv 2510.06303, 2509.06949): Qwen3 under a block-causal mask, in blocks of 4 and more.

TraDo has SDAR's files. The block is `block_size` in config.json; files without it are those of blocks of 4.
"""

from __future__ import annotations

from typing import ClassVar

from unmask.models.families.family import family
from unmask.models.families.qwen import QWEN3_SETTINGS, QWEN_IDS, Qwen3
from unmask.models.network.transformer import Shape


@family("sdar")
class SDAR(Qwen3):
    example: ClassVar = "JetLM/SDAR-8B-Chat"
    model_type = "sdar"
    classes = ("SDARForCausalLM", "SDARModel")
    settings: ClassVar = QWEN3_SETTINGS
    published = Shape(
        4096,
        36,
        32,
        hidden=12_288,
        vocab=151_936,
        context=32_768,
        kv_heads=8,
        theta=1e6,
        eps=1e-6,
        qk_norm=True,
        block=4,
    )
    mask = "<|MASK|>"
    mask_id = 151_669
    token_ids: ClassVar = {**QWEN_IDS, "<|MASK|>": 151_669}
    specials: ClassVar = {"eos_token": "<|endoftext|>", "mask_token": "<|MASK|>", "pad_token": "<|endoftext|>"}
