"""Finished texts judged and repaired, plainly: one text, a Python loop over parts and rounds."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unmask.bench import reference_loops as plain
from unmask.bench.reference_loops import Forward, Likelihood


def judged(forward: Forward, x: Tensor, slots: Tensor, likelihood: Likelihood, mask_id: int) -> Tensor:
    """log p of each token of the answer, hidden in its turn inside the finished text."""
    logp = torch.zeros(len(x), dtype=torch.float64)
    for hidden in plain.hidden_together([slots], 0, likelihood):
        l = plain.logits(forward, x.index_fill(0, hidden, mask_id)[None], mask_id)[0]
        logp[hidden] = plain.chosen(l, x)[hidden].double()
    return logp[slots]


def repair(
    forward: Forward,
    tokens: list[int],
    slots: Tensor,
    mask_id: int,
    *,
    rounds: int,
    share: float,
    likelihood: Likelihood,
) -> tuple[list[int], float, int]:
    """The repaired text, its score, and the forwards it took."""
    x, forwards = torch.tensor(tokens), len(plain.hidden_together([slots], 0, likelihood))
    scoring = forwards
    logp = judged(forward, x, slots, likelihood, mask_id)
    for _ in range(rounds):
        worst = slots[logp.sort(stable=True).indices[: math.ceil(share * len(slots))]]
        masked = x.index_fill(0, worst, mask_id)
        path = plain.adaptive(forward, masked.tolist(), 0, mask_id, sure=0.98, block=len(worst))
        again = torch.tensor(path.tokens)
        fresh = judged(forward, again, slots, likelihood, mask_id)
        forwards += path.steps + scoring
        if not fresh.sum() > logp.sum():
            break
        x, logp = again, fresh
    return x.tolist(), float(logp.sum()), forwards
