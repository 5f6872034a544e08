"""The search over second choices, plainly: one problem, a list of texts, a Python loop over steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from tests.decoders.plain_repair import judged
from unmask.bench import reference_loops as plain
from unmask.bench.reference_loops import Forward, Likelihood

HURRY = 1.25


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
class Plain:
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
