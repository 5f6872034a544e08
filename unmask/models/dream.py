"""Dream-v0-7B, Base and Instruct, and other checkpoints of model type `Dream` (arXiv 2508.15487): Qwen2.5's shape.

Dream grew out of a causal model and kept its habit: the logits about position i are read at position i - 1.
"""

from __future__ import annotations

from typing import Any

from unmask.errors import UnmaskError
from unmask.models.family import Config, Family, Ids, Names, number, plain, unquantised
from unmask.models.transformer import Shape

NAMES = Names(
    embed="model.embed_tokens",
    norm="model.norm",
    head="lm_head",
    layer="model.layers.{}",
    q="self_attn.q_proj",
    k="self_attn.k_proj",
    v="self_attn.v_proj",
    out="self_attn.o_proj",
    gate="mlp.gate_proj",
    up="mlp.up_proj",
    down="mlp.down_proj",
    attention_norm="input_layernorm",
    mlp_norm="post_attention_layernorm",
)

TEMPLATE = (
    "{% if messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}{% endif %}"
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

INHERITED, TRAINED = 131_072, 2048  # positions: what config.json repeats from Qwen2.5, and what Dream was trained on

_PLAIN: dict[str, Any] = {
    "hidden_act": "silu",
    "use_sliding_window": False,
    "use_mrope": False,
}


def read(config: Config) -> Shape:
    unquantised(config)
    plain(config, **_PLAIN)
    width, heads = number(config, "hidden_size"), number(config, "num_attention_heads")
    kv_heads = config.get("num_key_value_heads") or heads
    if width % heads or heads % kv_heads:
        raise UnmaskError(
            f"config.json has hidden_size={width}, num_attention_heads={heads}, num_key_value_heads={kv_heads}: "
            "they do not divide"
        )
    plain(config, head_dim=width // heads)
    context = number(config, "max_position_embeddings")
    return Shape(
        width=width,
        layers=number(config, "num_hidden_layers"),
        heads=heads,
        hidden=number(config, "intermediate_size"),
        vocab=number(config, "vocab_size"),
        context=TRAINED if context == INHERITED else context,
        kv_heads=kv_heads,
        theta=_theta(config),
        eps=number(config, "rms_norm_eps", kind=float),
        qkv_bias=config.get("attention_bias") is not False,  # Qwen2.5 has it and does not say so
        tied=bool(config.get("tie_word_embeddings")),
    )


def _theta(config: Config) -> float:
    """Newer files keep rotary settings in a table of their own; scaled positions are refused."""
    table = config.get("rope_parameters") or {}
    scaling = config.get("rope_scaling") or table
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind != "default":
        raise UnmaskError(
            f"config.json scales its rotary positions ({kind!r}), which is not supported: only 'default' is"
        )
    return number({**table, **config}, "rope_theta", kind=float)


def write(shape: Shape, ids: Ids) -> dict[str, Any]:
    return {
        "architectures": ["DreamModel"],
        "model_type": "Dream",
        "hidden_size": shape.width,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads or shape.heads,
        "intermediate_size": shape.hidden,
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.context,
        "rope_theta": shape.theta,
        "rope_scaling": None,
        "rms_norm_eps": shape.eps,
        "tie_word_embeddings": shape.tied,
        "mask_token_id": ids.mask,
        "eos_token_id": ids.eos,
        "bos_token_id": ids.eos,
        "pad_token_id": ids.eos,
        "attention_bias": shape.qkv_bias,
        **_PLAIN,
    }


DREAM = Family(
    "dream",
    "Dream",
    NAMES,
    read,
    write,
    mask="<|mask|>",
    ends=("<|endoftext|>", "<|im_end|>"),
    template=TEMPLATE,
    shifted=True,
    length=256,
)
