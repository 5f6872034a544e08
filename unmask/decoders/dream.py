"""Dream's published loop (arXiv 2508.15487): no blocks, a schedule of its own, and confidence after filtering.

At each of `steps` times from 1 to `eps` a share of the masks is written: the surest ones, drawn ones (`alg_temp`), or,
with `origin`, each mask by chance. Token and confidence come from the distribution after temperature, top-p and top-k.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unmask.core import Decoder, Frame, Rows, decoder
from unmask.core.shapes import AtBool
from unmask.decoders.path import check_temperature
from unmask.errors import UnmaskError, check_above, check_at_least, check_between, check_known
from unmask.policies.remasking import ORDERS, Draft, top

ALGORITHMS = ("origin", "maskgit_plus", "topk_margin", "entropy")


@decoder("dream")
@dataclass(frozen=True)
class Dream(Decoder):
    """Dream's `diffusion_generate`: write by probability, margin or entropy, or in random order, without blocks."""

    alg: str = "maskgit_plus"  # origin (random order), maskgit_plus (probability), topk_margin or entropy
    steps: int | None = None  # by default as many as there are masks; more are idle
    temperature: float = 0.0  # 0 takes the likeliest token
    top_p: float = 1.0  # candidates are the fewest tokens with this much probability; 1 keeps all
    top_k: int = 0  # number of likeliest tokens that are candidates; 0 keeps all
    alg_temp: float = 0.0  # positions are drawn by softmax(confidence / alg_temp); 0 takes the surest
    eps: float = 1e-3  # the last time

    single_path = commits_only = ends_together = True

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        check_known(ALGORITHMS, alg=self.alg)
        check_above(0, top_p=self.top_p, eps=self.eps)
        check_between(0, 1, top_p=self.top_p, eps=self.eps)
        check_at_least(0, alg_temp=self.alg_temp, top_k=self.top_k)
        check_at_least(1, steps=self.steps)
        if self.eps == 1:
            raise UnmaskError("eps must be less than 1, got 1.0")

    def __call__(self, rows: Rows) -> Iterator[Frame]:
        left, shares = rows.length, self._shares(rows.length)
        for number, (share, quota) in enumerate(zip(shares, quotas(left, shares), strict=True), 1):
            if quota or self.alg == "origin":  # a step that writes nothing need not ask
                draft = self._draft(rows.enter(slice(0, rows.length)), number, left)
                rows = draft.write(self._written(draft, quota, share))
                left -= 0 if self.alg == "origin" else quota
            yield rows.frame(number)

    def _draft(self, rows: Rows, step: int, left: int) -> Draft:
        """Draft the first `left` masks. Its beliefs are filtered, its log p is not."""
        at = rows.open(slice(0, rows.length), left)
        raw = rows.ask(at)
        beliefs = replace(raw, read=lambda places: self._narrow(raw.logits(places)))
        if self.temperature > 0:
            token = beliefs.draw(rows.uniform("token", step, at), 1.0)[0][:, :, 0]
        else:
            token, _ = beliefs.best
        return Draft(rows, at, token, raw.logp(token), beliefs, step)

    def _written(self, draft: Draft, quota: int, share: float) -> AtBool:
        uniform = draft.rows.uniform("order", draft.step, draft.at)[:, :, 0]
        if self.alg == "origin":
            return draft.masked & (uniform < share)
        if self.alg == "maskgit_plus":
            rank = draft.beliefs.logp(draft.token).exp()
        else:
            rank = ORDERS[self.alg.removeprefix("topk_")](draft)
        if self.alg_temp > 0:  # the largest of these are drawn one after another without replacement (Gumbel)
            rank = rank.double() / self.alg_temp - (-uniform.clamp(min=torch.finfo(uniform.dtype).tiny).log()).log()
        return top(rank, draft.masked, quota)

    def _narrow(self, logits: Tensor) -> Tensor:
        """Apply temperature, top-p and top-k to logits, in Dream's order."""
        if self.temperature > 0:
            logits = logits / self.temperature
        if self.top_p < 1:
            ordered, place = logits.sort(dim=1, descending=True, stable=True)
            before = ordered.softmax(1).cumsum(1).roll(1, 1)  # mass of all likelier tokens
            before[:, 0] = 0
            beyond = before > self.top_p
            logits = logits.masked_fill(beyond.scatter(1, place, beyond), -torch.inf)
        if 0 < self.top_k < logits.shape[1]:
            logits = logits.masked_fill(logits < logits.topk(self.top_k, dim=1).values[:, -1:], -torch.inf)
        return logits

    def resolved(self, length: int) -> Dream:
        return replace(self, steps=self.steps or length)

    def max_forward_passes(self, length: int) -> int:
        shares = self._shares(length)
        return len(shares) if self.alg == "origin" else sum(quota > 0 for quota in quotas(length, shares))

    def _shares(self, length: int) -> list[float]:
        """Return the share of the remaining masks that each step writes, in float32 as in the published loop."""
        times = torch.linspace(1, self.eps, (self.steps or length) + 1, dtype=torch.float32)
        return [*(1 - times[1:-1] / times[:-2]).tolist(), 1.0]


def quotas(length: int, shares: list[float]) -> list[int]:
    """Return how many masks each step writes."""
    written, left = [], length
    for share in shares:
        written.append(int(torch.tensor(float(left)) * share))  # in float32
        left -= written[-1]
    return written
