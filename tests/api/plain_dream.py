"""Dream's loop as it is described, one row at a time, with our random numbers in place of torch's."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from unmask.core import Canvas
from unmask.core.beliefs import invert
from unmask.core.noise import Noise


def dream(
    network: Callable[[Tensor], Tensor],
    prompt: list[int],
    length: int,
    mask: int,
    *,
    steps: int,
    alg: str,
    temperature: float = 0.0,
    top_p: float | None = None,
    top_k: int | None = None,
    alg_temp: float = 0.0,
    eps: float = 1e-3,
    seed: int = 0,
) -> list[int]:
    x = torch.tensor([prompt + [mask] * length])
    noise = Noise.of(Canvas.blank([prompt], length, mask, infill=True), seed)

    places = torch.arange(len(prompt) + length)[None]
    times = torch.linspace(1, eps, steps + 1)
    for i in range(steps):
        logits = network(x)
        logits = torch.cat([logits[:, :1], logits[:, :-1]], dim=1)[0]  # about the next token, so one place later
        masked = [place for place in range(x.shape[1]) if x[0, place] == mask]
        t, s, last = times[i], times[i + 1], i == steps - 1
        words, order = (noise.uniform(purpose, i + 1, places)[0, :, 0] for purpose in ("token", "order"))
        token, sure = {}, {}
        for place in masked:
            l = logits[place].clone()
            l[mask] = -math.inf
            p = narrowed(l, temperature, top_p, top_k).softmax(0)
            token[place] = int(p.argmax())
            if temperature > 0:
                token[place] = int(invert(p.double()[None], words[place, None, None]))
            ranked = p.sort(descending=True).values
            sure[place] = {
                "origin": 0.0,
                "maskgit_plus": float(p[token[place]]),
                "topk_margin": float(ranked[0] - ranked[1]),
                "entropy": float((p * (p + 1e-10).log()).sum()),
            }[alg]
        if alg == "origin":
            share = 1.0 if last else float(1 - s / t)
            chosen = [place for place in masked if order[place] < share]
        else:
            count = len(masked) if last else int(torch.tensor(float(len(masked))) * (1 - s / t))
            rank = dict(sure)
            if alg_temp > 0:
                rank = {at: sure[at] / alg_temp - math.log(-math.log(float(order[at]))) for at in masked}
            chosen = sorted(masked, key=lambda place: (-rank[place], place))[:count]
        for place in chosen:
            x[0, place] = token[place]
    return x[0].tolist()


def narrowed(logits: Tensor, temperature: float, top_p: float | None, top_k: int | None) -> Tensor:
    """Divided by the temperature; then the nucleus; then the likeliest."""
    logits = logits / temperature if temperature > 0 else logits
    if top_p is not None and top_p < 1:
        total, kept = 0.0, []
        p = logits.softmax(0)
        for token in p.argsort(descending=True, stable=True).tolist():
            if total > top_p and kept:
                break
            kept.append(token)
            total += float(p[token])
        logits = torch.full_like(logits, -math.inf).index_copy(0, torch.tensor(kept), logits[kept])
    if top_k:
        least = logits.topk(min(top_k, len(logits))).values[-1]
        logits = logits.masked_fill(logits < least, -math.inf)
    return logits
