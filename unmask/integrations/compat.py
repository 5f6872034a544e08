"""LLaDA's `generate` and Dream's `diffusion_generate` with their own argument names, for code that already calls them.

    out = generate(model, input_ids, steps=128, gen_length=128, block_length=32)
    out = diffusion_generate(model, input_ids, max_new_tokens=128, steps=128, alg="entropy")

Greedy tokens are those of the published loops; draws come from addressed noise, so `seed` decides them. See
docs/migrating.md.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unmask.core import Adapter, Canvas, Decoder, Denoiser, Frame, decode
from unmask.core.shapes import Int
from unmask.decoders import Dream, LowConfidence, Random
from unmask.decoders.dream import ALGORITHMS
from unmask.errors import UnmaskError, check_at_least, check_known, nearest
from unmask.models import Model
from unmask.models.hf import UNKNOWN, LoadedModule
from unmask.models.wrappers import Late
from unmask.runs.settings import guided
from unmask.runs.text import warn_once, without_padding

MASK, EOS, EOT = 126336, 126081, 126348  # ids of LLaDA-8B, as in the published function; a Model has its own
END_OF_TEXT = "<|endoftext|>"
DREAM_MASK = 151666  # id of Dream-v0-7B
REMASKING: dict[str, Callable[..., Decoder]] = {"low_confidence": LowConfidence, "random": Random}
NO_TOP_K = (
    "top_k is not given, so all tokens are candidates; transformers calls Dream's own function with top_k=50: "
    "give top_k=50 for the same candidates, or top_k=0 for all"
)


def generate(
    model: Model | Callable[..., Any],
    prompt: Int[Tensor, "row prompt"],
    attention_mask: Int[Tensor, "row prompt"] | None = None,
    steps: int = 128,
    gen_length: int = 128,
    block_length: int = 128,
    temperature: float = 0.0,
    cfg_scale: float = 0.0,
    remasking: str = "low_confidence",
    mask_id: int | None = None,
    logits_eos_inf: bool = False,
    confidence_eos_eot_inf: bool = False,
    *,
    seed: int = 0,
) -> Int[Tensor, "row pos"]:
    """Return prompt and answer as token ids, one row per prompt, of a model of ours or any module with `.logits`."""
    check_known(REMASKING, remasking=remasking)
    check_at_least(0, cfg_scale=cfg_scale)
    if confidence_eos_eot_inf and remasking == "random":
        raise UnmaskError("confidence_eos_eot_inf changes nothing in random order: use remasking='low_confidence'")
    denoiser, (never, late) = _denoiser(model, mask_id, MASK, shifted=False), _ends(model)
    decoder = REMASKING[remasking](block=block_length, steps=min(steps, gen_length), temperature=temperature)

    def adapt(metered: Denoiser, canvas: Canvas) -> Denoiser:
        metered = guided(metered, canvas, cfg_scale, never if logits_eos_inf else ())
        return Late(metered, late) if confidence_eos_eot_inf else metered

    return _decoded(decoder, denoiser, prompt, attention_mask, gen_length, seed, adapt)


@dataclass(frozen=True)
class DiffusionOutput:
    """The result of `diffusion_generate` with `return_dict_in_generate`."""

    sequences: Int[Tensor, "row pos"]  # prompts and answers
    history: list[Tensor] | None = None  # the sequences after each step, if requested


def diffusion_generate(
    model: Model | Callable[..., Any],
    inputs: Int[Tensor, "row prompt"],
    attention_mask: Int[Tensor, "row prompt"] | None = None,
    max_new_tokens: int | None = None,
    max_length: int = 20,
    steps: int = 512,
    temperature: float = 0.0,
    top_p: float | None = None,
    top_k: int | None = None,
    alg: str = "origin",
    alg_temp: float | None = None,
    eps: float = 1e-3,
    output_history: bool = False,
    return_dict_in_generate: bool = False,
    mask_token_id: int | None = None,
    *,
    seed: int = 0,
    **unknown: Any,
) -> Int[Tensor, "row pos"] | DiffusionOutput:
    """Return prompts and answers as token ids, one row per prompt. A module's logits are shifted, as Dream's are."""
    if unknown:
        name, known = next(iter(unknown)), [*inspect.signature(diffusion_generate).parameters][1:-1]
        raise UnmaskError(f"diffusion_generate has no argument {name!r} here: {nearest(name, known)}")
    check_known(ALGORITHMS, alg=alg)
    if top_k is None:
        warn_once(NO_TOP_K)
    length = max_length - inputs.shape[-1] if max_new_tokens is None else max_new_tokens
    check_at_least(1, max_new_tokens=length)
    narrow = {"top_p": 1.0 if top_p is None else float(top_p), "top_k": top_k or 0}
    decoder = Dream(alg, steps, float(temperature), **narrow, alg_temp=float(alg_temp or 0.0), eps=eps)  # type: ignore[arg-type]
    denoiser = _denoiser(model, mask_token_id, DREAM_MASK, shifted=True)
    history: list[Tensor] | None = [] if output_history else None
    sequences = _decoded(decoder, denoiser, inputs, attention_mask, length, seed, history=history)
    return DiffusionOutput(sequences, history) if return_dict_in_generate else sequences


def _decoded(
    decoder: Decoder,
    denoiser: Denoiser,
    prompt: Tensor,
    attention_mask: Tensor | None,
    length: int,
    seed: int,
    adapt: Adapter | None = None,
    history: list[Tensor] | None = None,
) -> Tensor:
    """Return prompts and answers with the padding as it was given; append the same after each step to `history`."""
    if prompt.ndim != 2:
        raise UnmaskError(f"prompt must be token ids of shape (row, position), got shape {tuple(prompt.shape)}")
    seen = None if attention_mask is None else attention_mask[:, : prompt.shape[1]].tolist()
    rows = without_padding(prompt.tolist(), seen, left_only=True)
    canvas = Canvas.blank(rows, length, denoiser.mask_id, infill=True, device=denoiser.device, dtype=denoiser.dtype)
    given = torch.arange(canvas.width, device=denoiser.device) < canvas.pad[:, None]
    prompt = prompt.to(denoiser.device)
    padding = torch.nn.functional.pad(prompt, (0, length))[:, -canvas.width :]

    def whole(tokens: Tensor) -> Tensor:
        return torch.cat([prompt[:, : -canvas.start], torch.where(given, padding, tokens)], dim=1)

    snapshots: dict[int, Tensor] = {}

    def watch(numbers: list[int], frame: Frame) -> None:
        snapshots.setdefault(frame.step, canvas.tokens.clone())[numbers] = frame.canvas.tokens

    keep = history is not None
    decoded = decode(decoder, denoiser, canvas, seed, adapt=adapt, watch=watch if keep else None)
    if history is not None:
        history += [whole(snapshots[step]) for step in sorted(snapshots)]
    return whole(torch.cat([result.canvas.tokens for result in decoded]).to(denoiser.device))


def _denoiser(model: Model | Callable[..., Any], mask_id: int | None, published: int, shifted: bool) -> Denoiser:
    """Return a model's denoiser, or wrap a module, whose mask is the published model's unless given."""
    if not isinstance(model, Model):
        return LoadedModule(model, published if mask_id is None else mask_id, UNKNOWN, shifted)
    if mask_id not in (None, model.denoiser.mask_id):
        raise UnmaskError(f"mask_id must be {model.denoiser.mask_id} for {model.name}, got {mask_id}")
    return model.denoiser


def _ends(model: Model | Callable[..., Any]) -> tuple[Sequence[int], Sequence[int]]:
    """Return end-of-text alone, which `logits_eos_inf` forbids, and all ends, which `confidence_eos_eot_inf` delays."""
    if not isinstance(model, Model):
        return [EOS], [EOS, EOT]
    ends = sorted(model.eos)
    text = [end for end in ends if len(ends) > 1 and model.text.decode([end]) == END_OF_TEXT]
    return text or ends, ends
