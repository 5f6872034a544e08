"""Order search and token search (arXiv 2601.20339, Appendix) plainly: one problem, lists and loops, whole logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Forward = Callable[[Tensor], Tensor]  # tokens (row, pos) -> logits (row, pos, vocab)

Vary = Literal["order", "token"]
Score = Literal["visible", "path"]


@dataclass(frozen=True)
class Partial:
    x: tuple[int, ...]
    path: float  # log p of every token when it was written
    score: float = 0.0


def search(
    forward: Forward,
    prompt: Sequence[int],
    length: int,
    mask: int,
    *,
    vary: Vary,
    score: Score,
    beams: int,
    block: int,
) -> tuple[list[Partial], int]:
    """The last K texts, best first, and how many rows were forwarded."""
    start = (*prompt, *[mask] * length)
    holes = [i for i, token in enumerate(start) if token == mask]
    live, forwards = [Partial(start, 0.0)], 1
    known = {start: log_p(forward, start, mask)}
    for first in range(0, len(holes), block):
        here = holes[first : first + block]
        for _ in here:
            children: list[Partial] = []
            for row in live:
                children += expand(row, known[row.x], here, mask, vary, beams)
            seen: dict[tuple[int, ...], Partial] = {}
            known = {}
            for child in children:
                if child.x not in known and score == "visible" and beams > 1:
                    known[child.x] = log_p(forward, child.x, mask)
                    forwards += 1
                if score == "visible" and beams > 1:
                    value = sum(float(known[child.x][i, child.x[i]]) for i in holes if child.x[i] != mask)
                else:
                    value = child.path
                if child.x not in seen or value > seen[child.x].score:
                    seen.pop(child.x, None)
                    seen[child.x] = Partial(child.x, child.path, value)
            live = sorted(seen.values(), key=lambda row: -row.score)[:beams]
            for row in live:
                if row.x not in known and mask in row.x:
                    known[row.x] = log_p(forward, row.x, mask)
                    forwards += 1
    return live, forwards


def expand(row: Partial, logp: Tensor, here: list[int], mask: int, vary: str, beams: int) -> list[Partial]:
    masked = [i for i in here if row.x[i] == mask]
    surest = sorted(masked, key=lambda i: -float(logp[i].max()))
    if vary == "order":
        writes = [(i, int(logp[i].argmax())) for i in surest[:beams]]
    else:
        tokens = sorted(range(logp.shape[1]), key=lambda token: -float(logp[surest[0], token]))[:beams]
        writes = [(surest[0], token) for token in tokens if logp[surest[0], token] > -torch.inf]
    return [Partial((*row.x[:i], token, *row.x[i + 1 :]), row.path + float(logp[i, token])) for i, token in writes]


def log_p(forward: Forward, x: tuple[int, ...], mask: int) -> Tensor:
    logits = forward(torch.tensor([x]))[0].double().clone()
    logits[:, mask] = -torch.inf
    return logits.log_softmax(-1)
