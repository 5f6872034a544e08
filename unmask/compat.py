"""LLaDA's `generate` by its own argument names, for code that already calls it (docs/from-llada.md).

    from unmask.compat import generate
    out = generate(model, input_ids, steps=128, gen_length=128, block_length=32)

Greedy tokens are the published loop's; draws at a temperature come from addressed noise, so `seed` decides them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from unmask.core import Canvas, Decoder, Denoiser, decode
from unmask.core.shapes import Int
from unmask.decoders import LowConfidence, Random
from unmask.errors import UnmaskError, nearest
from unmask.models import Model
from unmask.models.guidance import Guided
from unmask.models.hf import UNKNOWN, LoadedModule
from unmask.models.suppress import Late, Suppressed

MASK, EOS, EOT = 126336, 126081, 126348  # of LLaDA-8B, as in the published function; a Model has its own
REMASKING: dict[str, Callable[..., Decoder]] = {"low_confidence": LowConfidence, "random": Random}


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
    """Prompt and answer as token ids, one row per prompt. The model is one of ours, or any module with `.logits`."""
    if remasking not in REMASKING:
        raise UnmaskError(f"unknown remasking {remasking!r}: {nearest(remasking, REMASKING)}")
    if confidence_eos_eot_inf and remasking == "random":
        raise UnmaskError("confidence_eos_eot_inf changes nothing in random order: use remasking='low_confidence'")
    if cfg_scale < 0:
        raise UnmaskError(f"cfg_scale={cfg_scale} does not work: choose 0 (none) or more")
    denoiser, never, late = _parts(model, mask_id)
    decoder = REMASKING[remasking](block=block_length, steps=min(steps, gen_length), temperature=temperature)

    def adapt(metered: Denoiser, canvas: Canvas) -> Denoiser:
        if cfg_scale > 0:
            metered = Guided(metered, canvas.real & ~canvas.masked, cfg_scale)
        if logits_eos_inf:
            metered = Suppressed(metered, never)
        return Late(metered, late) if confidence_eos_eot_inf else metered

    rows = _unpadded(prompt, attention_mask)
    canvas = Canvas.blank(rows, gen_length, denoiser.mask_id, infill=True, device=denoiser.device, dtype=denoiser.dtype)
    decoded = decode(decoder, denoiser, canvas, seed, adapt=adapt)
    written = torch.cat([result.canvas.tokens for result in decoded]).to(denoiser.device)
    given = torch.arange(canvas.width, device=written.device) < canvas.pad[:, None]
    padding = torch.nn.functional.pad(prompt.to(written.device), (0, gen_length))[:, -canvas.width :]
    return torch.cat([prompt.to(written.device)[:, : -canvas.start], torch.where(given, padding, written)], dim=1)


def _parts(model: Model | Callable[..., Any], mask_id: int | None) -> tuple[Denoiser, Sequence[int], Sequence[int]]:
    """The denoiser, the tokens `logits_eos_inf` forbids, and those `confidence_eos_eot_inf` puts last."""
    if not isinstance(model, Model):
        return LoadedModule(model, MASK if mask_id is None else mask_id, UNKNOWN), [EOS], [EOS, EOT]
    if mask_id not in (None, model.denoiser.mask_id):
        raise UnmaskError(
            f"mask_id={mask_id} is not the mask of {model.name}: leave it out, or give {model.denoiser.mask_id}"
        )
    return model.denoiser, sorted(model.eos), sorted(model.eos)


def _unpadded(prompt: Tensor, attention_mask: Tensor | None) -> list[list[int]]:
    if prompt.ndim != 2:
        raise UnmaskError(f"prompt has shape {tuple(prompt.shape)}: give token ids of shape (row, position)")
    if attention_mask is None:
        return prompt.tolist()
    seen = attention_mask[:, : prompt.shape[1]].bool()
    if seen.shape != prompt.shape or bool((seen[:, :-1] & ~seen[:, 1:]).any()) or not bool(seen[:, -1].all()):
        raise UnmaskError("attention_mask must have the prompt's shape, with zeros for padding on the left only")
    return [row[kept].tolist() for row, kept in zip(prompt, seen, strict=True)]
