"""Decoders beyond the published loops, plainly: one problem, lists and Python loops over texts, steps and beams.

A forward that counts its rows tells what each of them costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from unmask.bench import reference_loops as plain
from unmask.bench.reference_loops import Beam, Forward, Likelihood, Search

HURRY = 1.25
Vary = Literal["order", "token"]
Score = Literal["visible", "path"]


def judged(forward: Forward, x: Tensor, slots: Tensor, likelihood: Likelihood, mask_id: int) -> Tensor:
    """Return log p of each token of the answer, hidden in its turn inside the finished text."""
    logp = torch.zeros(len(x), dtype=torch.float64)
    for hidden in plain.hidden_together([slots], 0, likelihood):
        l = plain.logits(forward, x.index_fill(0, hidden, mask_id)[None], mask_id)[0]
        logp[hidden] = plain.chosen(l, x)[hidden].double()
    return logp[slots]


def repair(
    forward: Forward, x: Tensor, slots: Tensor, mask_id: int, *, rounds: int, share: float, likelihood: Likelihood
) -> tuple[list[int], float]:
    """Write the least likely positions of a finished text again while that raises its score; return both."""
    logp = judged(forward, x, slots, likelihood, mask_id)
    for _ in range(rounds):
        worst = slots[logp.sort(stable=True).indices[: math.ceil(share * len(slots))]]
        masked = x.index_fill(0, worst, mask_id)
        again = torch.tensor(plain.adaptive(forward, masked.tolist(), 0, mask_id, sure=0.98, block=len(worst)).tokens)
        fresh = judged(forward, again, slots, likelihood, mask_id)
        if not fresh.sum() > logp.sum():
            break
        x, logp = again, fresh
    return x.tolist(), float(logp.sum())


@dataclass
class Text:
    x: Tensor
    prior: float = 0.0
    step: dict[int, int] = field(default_factory=dict)  # by position
    second: dict[int, tuple[int, float]] = field(default_factory=dict)  # by position: the token, and its odds
    score: float = 0.0

    @property
    def last(self) -> int:
        return max(self.step.values(), default=0)


@dataclass
class BestFirst:
    """The search over second choices."""

    forward: Forward
    slots: Tensor
    mask_id: int
    budget: int
    width: int
    sure: float
    plausible: float
    block: int
    likelihood: Likelihood

    def __post_init__(self) -> None:
        self.left = self.budget
        self.scoring = len(plain.hidden_together([self.slots], 0, self.likelihood))

    def run(self, x: Tensor) -> list[Text]:
        """The best texts, no two of them equal."""
        texts = [self.write(Text(x), self.left)]
        path = sum(self.logp)
        if self.left > 2 * self.scoring:
            self.judge(texts[0])
            while chosen := self.choose(texts):
                share = self.left // len(chosen) - self.scoring
                texts += [self.judge(self.write(self.deviate(text, place), share)) for text, place in chosen]
        else:
            texts[0].score = path
        seen: dict[tuple[int, ...], Text] = {}
        for text in sorted(texts, key=lambda text: -text.score):
            seen.setdefault(tuple(text.x.tolist()), text)
        return list(seen.values())[: self.width]

    def write(self, text: Text, allowed: int) -> Text:
        self.logp: list[float] = []
        number = text.last
        while len(masked := self.slots[text.x[self.slots] == self.mask_id]):
            number, self.left = number + 1, self.left - 1
            first = int((self.slots == masked[0]).nonzero()[0, 0]) // self.block * self.block
            here = self.slots[first : first + self.block]
            here = here[text.x[here] == self.mask_id]
            l = plain.logits(self.forward, text.x[None], self.mask_id)[0]
            logp, token = l.log_softmax(-1).topk(2, dim=-1)
            blocks = math.ceil((len(masked) - len(here)) / self.block)
            quota = len(here) if allowed <= 1 + blocks else math.ceil(len(masked) / allowed**HURRY)
            certain = int((logp[here, 0].exp() >= self.sure).sum())
            for place in plain.best(logp[:, 0], here, max(1, certain, quota)).tolist():
                text.x[place], text.step[place] = token[place, 0], number
                text.second[place] = int(token[place, 1]), float(logp[place, 1] - logp[place, 0])
                self.logp.append(float(logp[place, 0]))
            allowed -= 1
        return text

    def judge(self, text: Text) -> Text:
        self.left -= self.scoring
        text.score = float(judged(self.forward, text.x, self.slots, self.likelihood, self.mask_id).sum())
        return text

    def choose(self, texts: list[Text]) -> list[tuple[Text, int]]:
        if max(math.exp(text.score) for text in texts) >= self.sure:
            return []
        plausible = [
            (text, place)
            for text in texts
            for place in sorted(text.second)
            if text.prior + text.second[place][1] >= math.log(self.plausible) and self.cost(text, place) <= self.left
        ]
        plausible.sort(key=lambda pair: -(pair[0].prior + pair[0].second[pair[1]][1]))
        chosen, total = [], 0
        for text, place in plausible[: self.width]:
            total += self.cost(text, place)
            if total <= self.left:
                chosen.append((text, place))
        return chosen

    def cost(self, text: Text, place: int) -> int:
        return text.last - text.step[place] + 1 + self.scoring

    def deviate(self, text: Text, place: int) -> Text:
        (token, odds), began = text.second.pop(place), text.step[place]
        later = [where for where, step in text.step.items() if step >= began]
        x = text.x.index_fill(0, torch.tensor(later), self.mask_id)
        x[place] = token
        step = {where: step for where, step in text.step.items() if step < began} | {place: began}
        return Text(x, text.prior + odds, step)


@dataclass(frozen=True)
class Partial:
    x: tuple[int, ...]
    path: float  # log p of every token when it was written
    score: float = 0.0


def order_or_token_search(
    forward: Forward,
    prompt: Sequence[int],
    length: int,
    mask: int,
    *,
    vary: Vary,
    score: Score,
    beams: int,
    block: int,
) -> list[Partial]:
    """Return the last K texts of order search or token search (arXiv 2601.20339, Appendix), best first."""
    start = (*prompt, *[mask] * length)
    holes = [i for i, token in enumerate(start) if token == mask]
    live, known = [Partial(start, 0.0)], {start: log_p(forward, start, mask)}
    for first in range(0, len(holes), block):
        here = holes[first : first + block]
        for _ in here:
            children = [child for row in live for child in expand(row, known[row.x], here, mask, vary, beams)]
            seen: dict[tuple[int, ...], Partial] = {}
            known = {}
            for child in children:
                value = child.path
                if score == "visible" and beams > 1:
                    if child.x not in known:
                        known[child.x] = log_p(forward, child.x, mask)
                    value = sum(float(known[child.x][i, child.x[i]]) for i in holes if child.x[i] != mask)
                if child.x not in seen or value > seen[child.x].score:
                    seen.pop(child.x, None)
                    seen[child.x] = replace(child, score=value)
            live = sorted(seen.values(), key=lambda row: -row.score)[:beams]
            known |= {row.x: log_p(forward, row.x, mask) for row in live if row.x not in known and mask in row.x}
    return live


def expand(row: Partial, logp: Tensor, here: list[int], mask: int, vary: Vary, beams: int) -> list[Partial]:
    masked = [i for i in here if row.x[i] == mask]
    surest = sorted(masked, key=lambda i: -float(logp[i].max()))
    if vary == "order":
        writes = [(i, int(logp[i].argmax())) for i in surest[:beams]]
    else:
        tokens = sorted(range(logp.shape[1]), key=lambda token: -float(logp[surest[0], token]))[:beams]
        writes = [(surest[0], token) for token in tokens if logp[surest[0], token] > -torch.inf]
    return [Partial((*row.x[:i], token, *row.x[i + 1 :]), row.path + float(logp[i, token])) for i, token in writes]


def log_p(forward: Forward, x: tuple[int, ...], mask: int) -> Tensor:
    return plain.logits(forward, torch.tensor([x]), mask)[0].log_softmax(-1)


def sure_search(
    forward: Forward,
    prompt: Sequence[int],
    length: int,
    mask_id: int,
    *,
    beams: int,
    block: int | None,
    steps: int | None,
    temperature: float,
    likelihood: Likelihood,
    samples: int,
    sure: float,
    seed: int,
    **more: Any,
) -> Search:
    """Between searches a row writes every draw it is sure of: at least the quota, and never what the search is to."""
    assert more.pop("interval", None) is None
    x, noise = plain.start(prompt, length, mask_id, seed, "cpu")
    spans = plain.blocks(x, mask_id, block)
    walk = list(plain.plan(x, mask_id, block, steps))
    kept_back = {b: quota for _, b, _, quota, last in walk if last}
    rows = [Beam(x, plain.child(noise, i, 0), (0.0,) * len(spans)) for i in range(beams)]
    branches: list[list[Beam]] = []
    for number, b, here, quota, last in walk:
        if not last:
            rows = [ahead(forward, row, here, quota, kept_back[b], sure, number, mask_id, temperature) for row in rows]
            continue
        candidates: list[Beam] = []
        for parent, row in enumerate(rows):
            l = plain.logits(forward, row.x[None], mask_id)[0]
            for i in range(beams):
                x0 = plain.complete(row.x, l, mask_id, row.noise, "token", number, i, temperature)
                after, mine = plain.transfer(row.x, x0, l, here, quota, mask_id), plain.child(row.noise, i, number)
                fulls = [x0]
                for m in range(1, samples):
                    fulls.append(plain.complete(after, l, mask_id, mine, "sample", number, m, temperature))
                mean = plain.block_scores(forward, fulls, spans, b, likelihood, mask_id).mean(0).tolist()
                s = tuple(mean) if likelihood == "all-blocks" else (*row.s[:b], mean[b], *row.s[b + 1 :])
                candidates.append(Beam(after, mine, s, sum(s), tuple(x0.tolist()), parent, i))
        branches.append(candidates)
        rows = sorted(candidates, key=lambda candidate: -candidate.score)[:beams]
    return Search(rows[0].x.tolist(), rows[0].score, rows, branches)


def ahead(
    forward: Forward,
    row: Beam,
    here: Tensor,
    quota: int,
    kept_back: int,
    sure: float,
    number: int,
    mask_id: int,
    temperature: float,
) -> Beam:
    masked = here[row.x[here] == mask_id]
    if len(masked) <= kept_back:  # it waits for the others
        return row
    l = plain.logits(forward, row.x[None], mask_id)[0]
    x0 = plain.complete(row.x, l, mask_id, row.noise, "token", number, 0, temperature)
    logp = plain.chosen(l, x0)
    count = max(quota, sum(float(logp[i].exp()) >= sure for i in masked.tolist()))
    written = plain.best(logp, masked, min(count, len(masked) - kept_back))
    return replace(row, x=row.x.index_put((written,), x0[written]))
