"""DreamReasoner-8B: Qwen3 under a block-causal mask. Its model type says `Dream`, but its logits are not shifted.

It is told from Dream by its model class or, where config.json names none, by its `block_size`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from unmask.models.checkpoints.config import Config, class_names
from unmask.models.families.family import family
from unmask.models.families.sdar import SDAR
from unmask.models.network.transformer import Shape


@family("dream-reasoner")
class DreamReasoner(SDAR):
    example: ClassVar = "Dream-org/DreamReasoner-8B"
    model_type = "Dream"
    classes = ("DreamForCausalLM",)
    published: ClassVar[Shape] = replace(SDAR.published, block=32)

    def matches(self, config: Config) -> bool:
        return super().matches(config) and (bool(class_names(config)) or "block_size" in config)
