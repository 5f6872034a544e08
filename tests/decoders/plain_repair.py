"""Finished texts judged and repaired, plainly: one text, a Python loop over parts and rounds."""

from __future__ import annotations

import torch
from torch import Tensor

from unmask import plain
from unmask.plain import Forward, Likelihood


def judged(forward: Forward, x: Tensor, slots: Tensor, likelihood: Likelihood, mask_id: int) -> Tensor:
    """log p of each token of the answer, hidden in its turn inside the finished text."""
    logp = torch.zeros(len(x), dtype=torch.float64)
    for hidden in plain.hidden_together([slots], 0, likelihood):
        l = plain.logits(forward, x.index_fill(0, hidden, mask_id)[None], mask_id)[0]
        logp[hidden] = plain.chosen(l, x)[hidden].double()
    return logp[slots]
