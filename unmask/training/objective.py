"""LLaDA's objective (arXiv 2502.09992, Eq. 3): predict masked answer tokens, weighted by 1/t."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from unmask.models.transformer import Transformer

LEAST = 0.02  # smallest t: below it a row rarely has a mask, and 1/t adds only variance


def corrupt(tokens: Tensor, starts: Tensor, mask_id: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Mask each answer token with its row's probability t: the corrupted tokens, the mask, and the weights 1/t."""
    rows, width = tokens.shape
    device = tokens.device
    # Stratified: one t in each of n equal parts of [0, 1), which has less variance than independent draws.
    spread = torch.arange(rows, device=device) + torch.rand(1, device=device, generator=generator)
    t = LEAST + (1 - LEAST) * (spread[torch.randperm(rows, device=device, generator=generator)] / rows % 1)
    answer = torch.arange(width, device=device) >= starts[:, None]
    masked = answer & (torch.rand(rows, width, device=device, generator=generator) < t[:, None])
    return tokens.masked_fill(masked, mask_id), masked, (1 / t)[:, None].expand(rows, width)


def loss(module: Transformer, tokens: Tensor, starts: Tensor, mask_id: int, generator: torch.Generator) -> Tensor:
    """A bound on the negative log-likelihood per answer token, in nats."""
    noisy, masked, weight = corrupt(tokens, starts, mask_id, generator)
    hidden = module(noisy)[masked]
    each = F.cross_entropy(module.head(hidden).float(), tokens[masked], reduction="none")
    answers = (tokens.shape[1] - starts).sum()
    return (each * weight[masked]).sum() / answers
