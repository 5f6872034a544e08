"""Dream-v0-7B, Base and Instruct, and other checkpoints of model type `Dream` (arXiv 2508.15487), shaped like Qwen2.5.

Dream was initialised from a causal model, so its logits about position i are at position i - 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from unmask.models.checkpoints.config import Config, class_names
from unmask.models.families.family import Family, family, llama_settings
from unmask.models.network.transformer import Shape

INHERITED, TRAINED = 131_072, 2048  # positions in config.json, copied from Qwen2.5, and in Dream's training


@family("dream")
class Dream(Family):
    example: ClassVar = "Dream-org/Dream-v0-Instruct-7B"
    model_type = "Dream"
    classes = ("DreamModel",)
    settings: ClassVar = llama_settings(use_sliding_window=False, use_mrope=False)
    published = Shape(
        3584, 28, 28, hidden=18944, vocab=152_064, context=INHERITED, kv_heads=4, theta=1e6, eps=1e-6, qkv_bias=True
    )
    mask = "<|mask|>"
    ends = ("<|endoftext|>", "<|im_end|>")
    shifted = True
    length = 256

    def matches(self, config: Config) -> bool:
        """Return whether it is Dream; DreamReasoner has the same model type, and sets `block_size`."""
        return super().matches(config) and (bool(class_names(config)) or "block_size" not in config)

    def shape(self, config: Config) -> Shape:
        """Return the shape with the qkv biases of Qwen2.5, for which config.json has no key."""
        bias = {"attention_bias": True} if config.get("attention_bias") is None else {}
        shape = super().shape({**config, **bias})
        return replace(shape, context=TRAINED) if shape.context == INHERITED else shape
