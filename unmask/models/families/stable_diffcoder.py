"""Stable-DiffCoder-8B, Base and Instruct: Llama under a block-causal mask, in blocks of 4.

Its model type says `llama`, which is causal: only its model class tells it apart, so config.json has to name that.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from unmask.models.checkpoints.config import Config, class_names
from unmask.models.checkpoints.tokenizer_files import write_tokenizer_json
from unmask.models.families.family import LLAMA_SETTINGS, Family, Field, family
from unmask.models.network.transformer import Shape


@family("stable-diffcoder")
class StableDiffCoder(Family):
    example: ClassVar = "ByteDance-Seed/Stable-DiffCoder-8B-Instruct"
    model_type = "llama"
    classes = ("StableDiffcoderForCausalLM",)
    settings: ClassVar = {
        **{key: setting for key, setting in LLAMA_SETTINGS.items() if key != "mask_token_id"},
        "attention_bias": False,
        "mlp_bias": False,
        "block_size": Field("block"),
    }
    published = Shape(
        4096, 32, 32, hidden=14_336, vocab=155_136, context=8192, kv_heads=8, theta=5e5, eps=1e-6, block=4
    )
    mask = "<[MASK_TOKEN]>"
    mask_id = 5
    ends = ("<[end_of_sentence]>",)
    template = (
        "{% for message in messages %}{{ bos_token + message['role'] + '\\n' + message['content'] + eos_token }}"
        "{% endfor %}{% if add_generation_prompt %}{{ bos_token + 'assistant\\n' }}{% endif %}"
    )
    token_ids: ClassVar = {"<[begin_of_sentence]>": 0, "<[PAD]>": 1, "<[end_of_sentence]>": 2, "<[MASK_TOKEN]>": 5}
    specials: ClassVar = {
        "bos_token": "<[begin_of_sentence]>",
        "eos_token": "<[end_of_sentence]>",
        "mask_token": "<[MASK_TOKEN]>",
        "pad_token": "<[PAD]>",
    }

    def matches(self, config: Config) -> bool:
        return super().matches(config) and bool(class_names(config))

    def write_tokenizer(self, folder: Path, vocab: int) -> None:
        write_tokenizer_json(folder, self, vocab)
