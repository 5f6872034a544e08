"""LLaDA-8B-Base and -Instruct, LLaDA-1.5, and other checkpoints of model type `llada` (arXiv 2502.09992).

The mask's id is the checkpoint's own (126336 in LLaDA-8B, 5 in others): it is read from the config or the tokenizer.
"""

from __future__ import annotations

from typing import Any

from unmask.errors import UnmaskError
from unmask.models.family import Config, Family, Ids, Names, number, plain, unquantised
from unmask.models.transformer import Shape

NAMES = Names(
    embed="model.transformer.wte",
    norm="model.transformer.ln_f",
    head="model.transformer.ff_out",
    layer="model.transformer.blocks.{}",
    q="q_proj",
    k="k_proj",
    v="v_proj",
    out="attn_out",
    gate="ff_proj",
    up="up_proj",
    down="ff_out",
    attention_norm="attn_norm",
    mlp_norm="ff_norm",
)

# The published template opens the assistant's turn always, asked or not.
TEMPLATE = (
    "{% for message in messages %}{% if loop.first %}{{ bos_token }}{% endif %}"
    "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}"
    "{{ message['content'] | trim }}{{ '<|eot_id|>' }}{% endfor %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"
)

# What the published code could do otherwise and no published checkpoint does.
_PLAIN: dict[str, Any] = {
    "block_type": "llama",
    "block_group_size": 1,
    "activation_type": "silu",
    "layer_norm_type": "rms",
    "layer_norm_with_affine": True,
    "bias_for_layer_norm": False,
    "attention_layer_norm": False,
    "include_bias": False,
    "input_emb_norm": False,
    "scale_logits": False,
    "alibi": False,
    "rope": True,
}


def read(config: Config) -> Shape:
    if config.get("num_experts"):
        raise UnmaskError(
            "config.json describes a mixture of experts, which is not supported: use LLaDA-8B or LLaDA-1.5"
        )
    unquantised(config)
    plain(config, **_PLAIN)
    width, heads = number(config, "d_model"), number(config, "n_heads")
    kv_heads = 1 if config.get("multi_query_attention") else config.get("n_kv_heads") or heads
    if width % heads or heads % kv_heads:
        raise UnmaskError(
            f"config.json has d_model={width}, n_heads={heads}, n_kv_heads={kv_heads}: they do not divide"
        )
    return Shape(
        width=width,
        layers=number(config, "n_layers"),
        heads=heads,
        hidden=config.get("mlp_hidden_size") or width * number(config, "mlp_ratio"),
        vocab=number(config, "embedding_size", "vocab_size"),
        context=number(config, "max_sequence_length"),
        kv_heads=kv_heads,
        theta=number(config, "rope_theta", kind=float),
        eps=number(config, "rms_norm_eps", kind=float),
        qkv_bias=bool(config.get("include_qkv_bias")),
        tied=bool(config.get("weight_tying")),
    )


def write(shape: Shape, ids: Ids) -> dict[str, Any]:
    return {
        "architectures": ["LLaDAModelLM"],
        "model_type": "llada",
        "d_model": shape.width,
        "n_layers": shape.layers,
        "n_heads": shape.heads,
        "n_kv_heads": shape.kv_heads or shape.heads,
        "mlp_hidden_size": shape.hidden,
        "embedding_size": shape.vocab,
        "vocab_size": shape.vocab,
        "max_sequence_length": shape.context,
        "rope_theta": shape.theta,
        "rms_norm_eps": shape.eps,
        "include_qkv_bias": shape.qkv_bias,
        "weight_tying": shape.tied,
        "mask_token_id": ids.mask,
        "eos_token_id": ids.eos,
        "pad_token_id": ids.eos,
        **_PLAIN,
    }


LLADA = Family(
    "llada",
    "llada",
    NAMES,
    read,
    write,
    mask="<|mdm_mask|>",
    ends=("<|endoftext|>", "<|eot_id|>"),
    template=TEMPLATE,
)
