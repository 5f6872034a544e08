"""Fast-dLLM v2, 1.5B and 7B (arXiv 2509.26328): Qwen2.5 under a block-causal mask, with shifted logits.

The logits about a block's first position are those of the last position of the block before, which is finished by then.
"""

from __future__ import annotations

from typing import ClassVar

from unmask.models.families.family import Field, family
from unmask.models.families.qwen import QWEN2_SETTINGS, QWEN_IDS, Qwen2
from unmask.models.network.transformer import Shape


@family("fast-dllm")
class FastDLLM(Qwen2):
    example: ClassVar = "Efficient-Large-Model/Fast_dLLM_v2_7B"
    model_type = "Fast_dLLM_Qwen"
    classes = ("Fast_dLLM_QwenForCausalLM", "Fast_dLLM_QwenModel")
    settings: ClassVar = {
        **{key: setting for key, setting in QWEN2_SETTINGS.items() if key not in ("block_size", "mask_token_id")},
        "bd_size": Field("block"),
    }
    published = Shape(
        *(3584, 28, 28),
        hidden=18_944,
        vocab=152_064,
        context=32_768,
        kv_heads=4,
        theta=1e6,
        eps=1e-6,
        qkv_bias=True,
        block=32,
    )
    mask = "|<MASK>|"
    mask_id = 151_665
    token_ids: ClassVar = {**QWEN_IDS, "|<MASK>|": 151_665}
    specials: ClassVar = {"eos_token": "<|im_end|>", "mask_token": "|<MASK>|", "pad_token": "<|endoftext|>"}
    shifted = True
