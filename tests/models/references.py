"""The families' forwards computed by others: Hugging Face's library, and a transcription of what it does not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    OlmoeConfig,
    OlmoeForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from tests.models.folders import published
from unmask.core import Canvas
from unmask.models.families.family import family as families
from unmask.models.network.transformer import Shape

LIBRARY: dict[str, tuple[Any, Any]] = {
    "llada": (LlamaConfig, LlamaForCausalLM),
    "dream": (Qwen2Config, Qwen2ForCausalLM),
    "illada": (LlamaConfig, LlamaForCausalLM),
    "stable-diffcoder": (LlamaConfig, LlamaForCausalLM),
    "sdar": (Qwen3Config, Qwen3ForCausalLM),
    "dream-reasoner": (Qwen3Config, Qwen3ForCausalLM),
    "a2d-qwen3": (Qwen3Config, Qwen3ForCausalLM),
    "a2d-qwen3-bd3lm": (Qwen3Config, Qwen3ForCausalLM),
    "a2d-qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "a2d-qwen2-bd3lm": (Qwen2Config, Qwen2ForCausalLM),
    "fast-dllm": (Qwen2Config, Qwen2ForCausalLM),
    "llada-moe": (Qwen3MoeConfig, Qwen3MoeForCausalLM),
}


def reference(folder: Path, family: str, shape: Shape) -> torch.nn.Module:
    """The folder's weights in the library's model of the same layers."""
    config, module = LIBRARY[family]
    if family == "llada-moe" and shape.heads == 1:  # OLMoE norms all heads as one
        config, module = OlmoeConfig, OlmoeForCausalLM
    sizes = {
        "hidden_size": shape.width,
        "intermediate_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads or shape.heads,
        "head_dim": shape.head_width,
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.context,
        "rms_norm_eps": shape.eps,
        "rope_parameters": {"rope_type": "default", "rope_theta": shape.theta},
        "tie_word_embeddings": shape.tied,
        "attn_implementation": "eager",
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": None,
    }
    weights = published(folder)
    if shape.experts is not None:
        experts = {"num_experts": shape.experts.count, "num_experts_per_tok": shape.experts.chosen}
        sizes |= {**experts, "norm_topk_prob": False, "decoder_sparse_step": 1, "mlp_only_layers": []}
        key = "intermediate_size" if config is OlmoeConfig else "moe_intermediate_size"
        sizes[key] = shape.experts.hidden
        weights = _stacked(weights, shape)
    if family == "llada":
        sizes["attention_bias"] = shape.qkv_bias
        weights = {_llama(name): weight for name, weight in weights.items()}
        if shape.qkv_bias:  # Llama's setting gives the output projection a bias too
            zeros = torch.zeros(shape.width)
            weights |= {f"model.layers.{layer}.self_attn.o_proj.bias": zeros for layer in range(shape.layers)}
    built = module(config(**sizes))
    missing, unexpected = built.load_state_dict(weights, strict=False)
    assert not unexpected
    assert set(missing) == ({"lm_head.weight"} if shape.tied else set())
    built.tie_weights()
    return built.eval()


def _llama(name: str) -> str:
    for ours, llama in (
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
        name = name.replace(ours, llama)
    return name


def _stacked(weights: dict[str, Tensor], shape: Shape) -> dict[str, Tensor]:
    """The library keeps all experts of a layer in one tensor."""
    assert shape.experts is not None
    out = {name: weight for name, weight in weights.items() if ".experts." not in name}
    for layer in range(shape.layers):
        prefix = f"model.layers.{layer}.mlp.experts"
        every = range(shape.experts.count)
        pairs = [[weights[f"{prefix}.{n}.{part}_proj.weight"] for part in ("gate", "up")] for n in every]
        out[f"{prefix}.gate_up_proj"] = torch.stack([torch.cat(pair) for pair in pairs])
        out[f"{prefix}.down_proj"] = torch.stack([weights[f"{prefix}.{n}.down_proj.weight"] for n in every])
    return out


def library_logits(module: torch.nn.Module, family: str, canvas: Canvas, at: Tensor, block: int | None) -> Tensor:
    """The library's logits about some columns, that of the mask being 0. Padding attends to itself alone."""
    places = torch.arange(canvas.width) - canvas.pad[:, None]
    seen = canvas.real[:, :, None] & canvas.real[:, None, :]
    if block is not None:
        seen &= places[:, None, :] // block <= places[:, :, None] // block
    seen |= torch.eye(canvas.width, dtype=torch.bool)
    logits = _logits(module, canvas.tokens, seen, places.clamp(min=0))
    read = torch.maximum(at - 1, canvas.pad[:, None]) if families.make(family).shifted else at
    out = logits.gather(1, read[:, :, None].expand(-1, -1, logits.shape[-1])).clone()
    out[..., canvas.mask_id] = 0
    return out


def row_logits(module: torch.nn.Module, tokens: Tensor, block: int | None) -> Tensor:
    """Return the logits of one row without padding, (pos, vocab)."""
    places = torch.arange(len(tokens))
    seen = places[None] // (block or len(tokens)) <= places[:, None] // (block or len(tokens))
    return _logits(module, tokens[None], seen[None], places[None])[0]


def _logits(module: torch.nn.Module, tokens: Tensor, seen: Tensor, places: Tensor) -> Tensor:
    shut = torch.zeros(seen.shape).masked_fill_(~seen, torch.finfo(torch.float32).min)[:, None]
    with torch.inference_mode():
        return module(tokens, attention_mask=shut, position_ids=places).logits


def llada2_logits(weights: dict[str, Tensor], shape: Shape, tokens: Tensor) -> Tensor:
    """LLaDA2's forward of one row from its description, in float64: a loop over positions, heads and experts."""
    experts, head = shape.experts, shape.head_width
    assert experts is not None
    assert shape.rotary is not None
    w = {name: weight.double() for name, weight in weights.items()}
    heads, kv = shape.heads, shape.kv_heads or shape.heads

    def norm(x: Tensor, name: str) -> Tensor:
        return x * (x.square().mean(-1, keepdim=True) + shape.eps).rsqrt() * w[f"{name}.weight"]

    def mlp(x: Tensor, name: str) -> Tensor:
        gate, up = w[f"{name}.gate_proj.weight"] @ x, w[f"{name}.up_proj.weight"] @ x
        return w[f"{name}.down_proj.weight"] @ (gate * gate.sigmoid() * up)

    def turn(x: Tensor, place: int) -> Tensor:
        half = (shape.rotary or 0) // 2
        out = x.clone()
        for i in range(half):
            angle = torch.tensor(place * shape.theta ** (-2 * i / (2 * half)), dtype=torch.float64)
            out[i] = x[i] * angle.cos() - x[i + half] * angle.sin()
            out[i + half] = x[i + half] * angle.cos() + x[i] * angle.sin()
        return out

    def mixture(x: Tensor, name: str) -> Tensor:
        scores = (w[f"{name}.gate.weight"] @ x).sigmoid()
        ranks = (scores + w[f"{name}.gate.expert_bias"]).view(experts.groups, -1)
        groups = ranks.sort(descending=True).values[:, :2].sum(1).argsort(descending=True)[: experts.kept_groups]
        open_ = torch.full_like(ranks, -torch.inf)
        open_[groups] = ranks[groups]
        chosen = open_.flatten().argsort(descending=True)[: experts.chosen].tolist()
        total = sum(float(scores[n]) for n in chosen)
        mixed = sum(float(scores[n]) / total * experts.scale * mlp(x, f"{name}.experts.{n}") for n in chosen)
        return mixed + mlp(x, f"{name}.shared_experts")

    x = w["model.word_embeddings.weight"][tokens]
    for layer in range(shape.layers):
        name = f"model.layers.{layer}"
        qkv = (norm(x, f"{name}.input_layernorm") @ w[f"{name}.attention.query_key_value.weight"].T).view(
            len(x), -1, head
        )
        q = norm(qkv[:, :heads], f"{name}.attention.query_layernorm")
        k = norm(qkv[:, heads : heads + kv], f"{name}.attention.key_layernorm")
        rows = []
        for p in range(len(x)):
            visible = [j for j in range(len(x)) if j // (shape.block or 1) <= p // (shape.block or 1)]
            mixed = []
            for h in range(heads):
                g = h // (heads // kv)
                score = torch.stack([turn(q[p, h], p) @ turn(k[j, g], j) for j in visible]) / head**0.5
                mixed.append(score.softmax(0) @ qkv[visible, heads + kv + g])
            rows.append(w[f"{name}.attention.dense.weight"] @ torch.cat(mixed))
        x = x + torch.stack(rows)
        inner = norm(x, f"{name}.post_attention_layernorm")
        through = mlp if layer < experts.dense else mixture
        x = x + torch.stack([through(row, f"{name}.mlp") for row in inner])
    return norm(x, "model.norm") @ w["lm_head.weight"].T
