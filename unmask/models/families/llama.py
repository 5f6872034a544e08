"""Families with the shape and names of Llama: iLLaDA-8B (arXiv 2606.25331) and Stable-DiffCoder-8B.

Neither config nor tokenizer map names their mask: it is a special token with id 5.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from unmask.models.checkpoints.config import Config, class_names
from unmask.models.families.family import Family, Field, family, llama_settings
from unmask.models.network.transformer import Shape

SHAPE = Shape(4096, 32, 32, hidden=14_336, vocab=155_136, context=8192, kv_heads=8, theta=5e5, eps=1e-6)


class Llama(Family):
    """The base class of these families, not one itself."""

    settings: ClassVar = llama_settings("mask_token_id", attention_bias=False, mlp_bias=False)
    mask_id = 5
    ends = ("<[end_of_sentence]>",)


@family("illada")
class ILLaDA(Llama):
    """iLLaDA, Base and Instruct: full attention and a tied head."""

    example: ClassVar = "GSAI-ML/iLLaDA-8B-Instruct"
    model_type = "illada"
    classes = ("ILLaDAForCausalLM",)
    settings: ClassVar = {**Llama.settings, "layer_norm_eps": None}  # a number would make its norms LayerNorm
    published = replace(SHAPE, tied=True)
    mask = "<[MASK]>"


@family("stable-diffcoder")
class StableDiffCoder(Llama):
    """Stable-DiffCoder, Base and Instruct: a block-causal mask with blocks of 4.

    Its model type is `llama`, which is causal. Only its model class identifies it, so config.json has to name that.
    """

    example: ClassVar = "ByteDance-Seed/Stable-DiffCoder-8B-Instruct"
    model_type = "llama"
    classes = ("StableDiffcoderForCausalLM",)
    settings: ClassVar = {**Llama.settings, "block_size": Field("block")}
    published = replace(SHAPE, block=4)
    mask = "<[MASK_TOKEN]>"

    def matches(self, config: Config) -> bool:
        return super().matches(config) and bool(class_names(config))
