"""Dream-v0-7B, Base and Instruct, and other checkpoints of model type `Dream` (arXiv 2508.15487), shaped like Qwen2.5.

Dream was initialised from a causal model, so its logits about position i are at position i - 1.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from unmask.models.checkpoints.config import Config, class_names
from unmask.models.checkpoints.save import write_json, write_specials
from unmask.models.checkpoints.tokenizer_files import MERGES, vocabulary
from unmask.models.families.family import LLAMA_SETTINGS, Family, family
from unmask.models.network.transformer import Shape

INHERITED, TRAINED = 131_072, 2048  # positions: in config.json, copied from Qwen2.5; and in Dream's training


@family("dream")
class Dream(Family):
    example: ClassVar = "Dream-org/Dream-v0-Instruct-7B"
    model_type = "Dream"
    classes = ("DreamModel",)
    settings: ClassVar = {**LLAMA_SETTINGS, "use_sliding_window": False, "use_mrope": False}
    published = Shape(
        3584, 28, 28, hidden=18944, vocab=152_064, context=INHERITED, kv_heads=4, theta=1e6, eps=1e-6, qkv_bias=True
    )
    mask = "<|mask|>"
    ends = ("<|endoftext|>", "<|im_end|>")
    template = (
        "{% if messages[0]['role'] != 'system' %}"
        "{{ '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}{% endif %}"
        "{% for message in messages %}"
        "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
    )
    # Directly after the words of the published vocab.json; the published tokenizer has other tokens in between.
    token_ids: ClassVar = {
        token: 151_643 + number
        for number, token in enumerate(("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|beginoftext|>", "<|mask|>"))
    }
    specials: ClassVar = {
        "bos_token": "<|beginoftext|>",
        "eos_token": "<|endoftext|>",
        "mask_token": "<|mask|>",
        "pad_token": "<|endoftext|>",
    }
    shifted = True
    length = 256

    def matches(self, config: Config) -> bool:
        """DreamReasoner, another family, has the same model type and counts blocks."""
        return super().matches(config) and (bool(class_names(config)) or "block_size" not in config)

    def shape(self, config: Config) -> Shape:
        """Qwen2.5 has qkv biases without a key for them."""
        bias = {"attention_bias": True} if config.get("attention_bias") is None else {}
        shape = super().shape({**config, **bias})
        return replace(shape, context=TRAINED) if shape.context == INHERITED else shape

    def write_tokenizer(self, folder: Path, vocab: int) -> None:
        """vocab.json and merges.txt, with the special tokens in tokenizer_config.json."""
        ids = self.ids(vocab)
        write_json(folder / "vocab.json", vocabulary(min(ids.values()), {}))
        (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(MERGES) + "\n", encoding="utf-8")
        flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
        added = {str(number): {"content": token, **flags} for token, number in ids.items()}
        write_specials(folder, self.specials, self.template, "DreamTokenizer", added_tokens_decoder=added)
        write_json(folder / "added_tokens.json", ids)
