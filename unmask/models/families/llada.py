"""LLaDA-8B-Base and -Instruct, LLaDA-1.5, and other checkpoints of model type `llada` (arXiv 2502.09992).

The mask has a different id in each checkpoint (126336 in LLaDA-8B): it is read from the config or the tokenizer.
"""

from __future__ import annotations

from typing import ClassVar

from unmask.errors import UnmaskError
from unmask.models.checkpoints.config import Config, flag, positive_number
from unmask.models.families.family import Family, Field, Names, family
from unmask.models.network.transformer import Shape


@family("llada")
class LLaDA(Family):
    example: ClassVar = "GSAI-ML/LLaDA-8B-Instruct"
    model_type = "llada"
    classes = ("LLaDAModelLM",)
    settings: ClassVar = {
        "d_model": Field("width"),
        "n_layers": Field("layers"),
        "n_heads": Field("heads"),
        "n_kv_heads": Field("kv_heads"),
        "mlp_hidden_size": Field("hidden"),
        "embedding_size": Field("vocab"),
        "vocab_size": Field("vocab"),
        "max_sequence_length": Field("context"),
        "rope_theta": Field("theta"),
        "rms_norm_eps": Field("eps"),
        "include_qkv_bias": Field("qkv_bias"),
        "weight_tying": Field("tied"),
        "mask_token_id": Field("mask"),
        "eos_token_id": Field("eos"),
        "pad_token_id": Field("eos"),
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
    published = Shape(4096, 32, 32, hidden=12288, vocab=126_464, context=4096)
    names = Names(
        embed="model.transformer.wte",
        norm="model.transformer.ln_f",
        head="model.transformer.ff_out",
        layer="model.transformer.blocks.{}",
        qkv=("q_proj", "k_proj", "v_proj"),
        out="attn_out",
        mlp=("ff_proj", "up_proj", "ff_out"),
        norms=("attn_norm", "ff_norm"),
    )
    mask = "<|mdm_mask|>"
    ends = ("<|endoftext|>", "<|eot_id|>")

    def shape(self, config: Config) -> Shape:
        if config.get("num_experts"):
            raise UnmaskError(
                "num_experts in config.json is not supported for model type llada: LLaDA's own class has no experts"
            )
        if config.get("layer_norm_type") is None:
            raise UnmaskError(
                "config.json does not set layer_norm_type, and LLaDA's own class then uses LayerNorm: "
                "set it to 'rms' if the weights were trained with RMSNorm"
            )
        config = dict(config)
        if flag(config, "multi_query_attention"):
            config["n_kv_heads"] = 1
        if config.get("mlp_hidden_size") is None:
            config["mlp_hidden_size"] = positive_number(config, "d_model") * positive_number(config, "mlp_ratio")
        return super().shape(config)
