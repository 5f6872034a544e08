"""Random checkpoints of any shape, and the same weights in the models of Hugging Face's library."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from unmask.errors import UnmaskError
from unmask.models.checkpoints.random_weights import random_folder
from unmask.models.network.transformer import Shape

FAMILIES = ("llada", "dream")


def some_shape(family: str, seed: int) -> Shape:
    """A random shape, with or without grouped heads, tied heads and biases."""
    draw = random.Random(seed)
    heads = draw.choice([1, 2, 4, 6])
    return Shape(
        width=heads * draw.choice([4, 8, 16]),
        layers=draw.choice([1, 2, 3]),
        heads=heads,
        hidden=draw.choice([24, 40, 64]),
        vocab=draw.randint(300, 400),
        context=draw.choice([64, 100, 512]),
        kv_heads=draw.choice([number for number in (1, 2, 3, 6) if heads % number == 0]),
        theta=draw.choice([1e4, 5e5, 1e6]),
        eps=draw.choice([1e-6, 1e-5, 1e-3]),
        qkv_bias=family == "dream" or draw.random() < 0.5,
        tied=draw.random() < 0.3,
    )


def folder_of(path: Path, family: str, shape: Shape | None = None, seed: int = 0) -> Path:
    return random_folder(path, family, "nano", seed=seed, dtype=torch.float32, shape=shape)


def published(folder: Path) -> dict[str, torch.Tensor]:
    return {name: weight for file in folder.glob("*.safetensors") for name, weight in load_file(file).items()}


def counterpart(folder: Path, family: str, shape: Shape) -> torch.nn.Module:
    """Llama for LLaDA, Qwen2 for Dream; their causal mask is overruled by the one they are given."""
    sizes: dict[str, Any] = {
        "hidden_size": shape.width,
        "intermediate_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.context,
        "rms_norm_eps": shape.eps,
        "rope_theta": shape.theta,
        "tie_word_embeddings": shape.tied,
        "attn_implementation": "eager",
    }
    if family == "dream":
        module, weights = Qwen2ForCausalLM(Qwen2Config(**sizes)), published(folder)
    else:
        module = LlamaForCausalLM(LlamaConfig(**sizes, attention_bias=shape.qkv_bias))
        weights = {_llama(name): weight for name, weight in published(folder).items()}
        if shape.qkv_bias:  # Llama's setting gives the output projection a bias too
            weights |= {
                f"model.layers.{n}.self_attn.o_proj.bias": torch.zeros(shape.width) for n in range(shape.layers)
            }
    missing, unexpected = module.load_state_dict(weights, strict=False)
    assert not unexpected
    assert set(missing) == ({"lm_head.weight"} if shape.tied else set())
    module.tie_weights()
    return module.eval()


def _llama(name: str) -> str:
    for published, llama in (
        ("model.transformer.wte.", "model.embed_tokens."),
        ("model.transformer.ln_f.", "model.norm."),
        ("model.transformer.ff_out.", "lm_head."),
        ("model.transformer.blocks.", "model.layers."),
        (".q_proj.", ".self_attn.q_proj."),
        (".k_proj.", ".self_attn.k_proj."),
        (".v_proj.", ".self_attn.v_proj."),
        (".attn_out.", ".self_attn.o_proj."),
        (".ff_proj.", ".mlp.gate_proj."),
        (".up_proj.", ".mlp.up_proj."),
        (".ff_out.", ".mlp.down_proj."),
        (".attn_norm.", ".input_layernorm."),
        (".ff_norm.", ".post_attention_layernorm."),
    ):
        name = name.replace(published, llama)
    return name


def change(path: Path, **settings: Any) -> None:
    """Set keys of a JSON file; None removes one."""
    table = {**json.loads(path.read_text()), **settings}
    path.write_text(json.dumps({key: value for key, value in table.items() if value is not None}))


def refused(call: Callable[[], object], *words: str) -> None:
    """Check that a call raises an error of one sentence that contains these words."""
    with pytest.raises(UnmaskError) as caught:
        call()
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert len(sentence) < 700
    for word in words:
        assert word in sentence, sentence
