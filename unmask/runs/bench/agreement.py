"""How far ours and the plain loop agree on the same canvases, where rounding lets them differ."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unmask import plain
from unmask.core import Canvas, Denoiser, Noise
from unmask.runs.bench.bed import Bed
from unmask.runs.bench.plan import Sizes


@torch.inference_mode()
def agreement(bed: Bed, denoiser: Denoiser, sizes: Sizes, seed: int = 0) -> dict[str, Any]:
    """At every block's start, K rows of random tokens before it: log p of all tokens, and a draw at each mask."""
    apart, equal, draws = 0.0, 0, 0
    for done in range(0, sizes.length, sizes.block):
        canvas = _canvas(bed, sizes, done)
        at = canvas.holes[:, : sizes.block]
        noise = Noise.of(canvas, seed)
        theirs, mine = plain.logits(bed.forward, canvas.tokens, canvas.mask_id), denoiser(canvas, at)
        token, _ = mine.draw(noise.uniform("token", 1, canvas.places(at), 1), sizes.temperature)
        logits = mine.logits(torch.arange(at.numel(), device=at.device))
        other = theirs.gather(1, at[:, :, None].expand(-1, -1, theirs.shape[-1])).flatten(0, 1)
        apart = max(apart, float((_logp(logits, canvas.mask_id) - _logp(other, canvas.mask_id)).abs().max()))
        for row, x in enumerate(canvas.tokens):
            own = noise.rows(at.new_tensor([row]))
            full = plain.complete(x, theirs[row], canvas.mask_id, own, "token", 1, 0, sizes.temperature)
            equal += int((full[at[row]] == token[row, :, 0]).sum())
        draws += at.numel()
    return {"largest_log_p_difference": apart, "equal_draws": equal, "draws": draws, "share": equal / draws}


def _canvas(bed: Bed, sizes: Sizes, done: int) -> Canvas:
    before = bed.random_ids(sizes.beams, (sizes.prompt or sizes.block) + done, seed=done)
    return bed.canvas(before, sizes.length - done)


def _logp(logits: Tensor, mask_id: int) -> Tensor:
    return logits.log_softmax(1).index_fill(1, torch.tensor([mask_id], device=logits.device), 0.0)
