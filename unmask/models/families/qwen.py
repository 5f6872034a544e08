"""What the families built on Qwen2.5 and Qwen3 share: config keys, ChatML and tokenizer files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from unmask.models.checkpoints.tokenizer_files import write_tokenizer_json
from unmask.models.families.family import LLAMA_SETTINGS, Family, Field

QWEN2_SETTINGS: dict[str, Any] = {
    **{key: setting for key, setting in LLAMA_SETTINGS.items() if key != "attention_bias"},
    "block_size": Field("block"),
    "use_sliding_window": False,
}
QWEN3_SETTINGS: dict[str, Any] = {**QWEN2_SETTINGS, "attention_bias": False, "head_dim": Field("head")}
QWEN_IDS = {"<|endoftext|>": 151_643, "<|im_start|>": 151_644, "<|im_end|>": 151_645}


class Qwen(Family):
    """Abstract: its cases add the shape."""

    ends = ("<|endoftext|>", "<|im_end|>")
    template = (
        "{% for message in messages %}"
        "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
    )
    length = 256

    def write_tokenizer(self, folder: Path, vocab: int) -> None:
        write_tokenizer_json(folder, self, vocab)


class Qwen2(Qwen):
    """Biases on queries, keys and values, which no key of config.json announces."""

    fixed: ClassVar = {"qkv_bias": True}


class Qwen3(Qwen):
    """Norms on the queries and keys of every head, whose width is a setting of its own."""

    fixed: ClassVar = {"qk_norm": True}
