"""iLLaDA-8B, Base and Instruct (arXiv 2606.25331): Llama's shape and names under full attention, with a tied head.

Neither config nor tokenizer map names the mask: it is the token `<[MASK]>`, id 5.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from unmask.models.checkpoints.tokenizer_files import write_tokenizer_json
from unmask.models.families.family import LLAMA_SETTINGS, Family, family
from unmask.models.network.transformer import Shape


@family("illada")
class ILLaDA(Family):
    example: ClassVar = "GSAI-ML/iLLaDA-8B-Instruct"
    model_type = "illada"
    classes = ("ILLaDAForCausalLM",)
    settings: ClassVar = {
        **{key: setting for key, setting in LLAMA_SETTINGS.items() if key != "mask_token_id"},
        "attention_bias": False,
        "mlp_bias": False,
        "layer_norm_eps": None,  # a number would make its norms LayerNorm
    }
    published = Shape(
        4096, 32, 32, hidden=14_336, vocab=155_136, context=8192, kv_heads=8, theta=5e5, eps=1e-6, tied=True
    )
    mask = "<[MASK]>"
    mask_id = 5
    ends = ("<[end_of_sentence]>",)
    template = (
        "{% for message in messages %}{{ bos_token + message['role'] + '\\n' + message['content'] + eos_token }}"
        "{% endfor %}{% if add_generation_prompt %}{{ bos_token + 'assistant\\n' }}{% endif %}"
    )
    token_ids: ClassVar = {"<[begin_of_sentence]>": 0, "<[PAD]>": 1, "<[end_of_sentence]>": 2, "<[MASK]>": 5}
    specials: ClassVar = {
        "bos_token": "<[begin_of_sentence]>",
        "eos_token": "<[end_of_sentence]>",
        "pad_token": "<[PAD]>",
    }

    def write_tokenizer(self, folder: Path, vocab: int) -> None:
        write_tokenizer_json(folder, self, vocab)
