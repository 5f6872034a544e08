"""Ways that hide parts of a text and have them predicted from the rest: the likelihoods of a search, and the ELBO."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import NamedTuple

import torch

from unmask.core import Denoiser, Noise
from unmask.core.noise import key
from unmask.errors import UnmaskError
from unmask.policies.likelihood import NOTHING, Likelihood, Slots, likelihood
from unmask.policies.passage import Cloze, Passage, ask, portions
from unmask.policies.way import Judgement, Way, way


class Weighed(NamedTuple):
    """A cloze, and the weight of the log p of what it asks about."""

    cloze: Cloze
    weight: float


class Answers:
    """log p of what each cloze asks about. Equal clozes are asked once."""

    def __init__(self, denoiser: Denoiser, groups: Iterable[Weighed]):
        self.logps: dict[Cloze, list[float]] = {}
        self.computed: dict[Cloze, int] = {}
        for some in portions(list(dict.fromkeys(group.cloze for group in groups))):
            reply = ask(denoiser, some)
            self.computed |= zip(some, reply.computed, strict=True)
            for cloze, values in zip(some, reply.beliefs.logp(reply.target).tolist(), strict=True):
                self.logps[cloze] = values[: len(cloze.asked)]

    def by_slot(self, groups: Iterable[Weighed]) -> dict[int, float]:
        """What the groups say of each slot, added up."""
        terms: dict[int, list[float]] = defaultdict(list)
        for cloze, weight in groups:
            for slot, value in zip(cloze.asked, self.logps[cloze], strict=True):
                terms[slot].append(weight * value)
        return {slot: fsum(values) for slot, values in terms.items()}

    def judgement(self, logps: dict[int, float], groups: Sequence[Weighed], error: float | None = None) -> Judgement:
        """Slots that no group asked about add nothing."""
        distinct = {group.cloze for group in groups}
        positions = sum(self.computed[cloze] for cloze in distinct)
        slots = range(len(groups[0].cloze.passage.text))
        return Judgement([logps.get(slot, 0.0) for slot in slots], len(groups), len(distinct), positions, error)


@dataclass(frozen=True)
class Partition(Way):
    """A likelihood of a search, block by block."""

    likelihood: Likelihood

    def __call__(self, passages: Sequence[Passage], denoiser: Denoiser, seed: int) -> list[Judgement]:
        del seed
        every = [[self._groups(passage, block) for block in passage.blocks] for passage in passages]
        answers = Answers(denoiser, (group for blocks in every for groups in blocks for group in groups))
        judgements = []
        for blocks in every:
            logps: dict[int, float] = {}
            for groups in blocks:
                logps |= answers.by_slot(groups)  # a slot that a later block predicts again counts as it does then
            judgements.append(answers.judgement(logps, [group for groups in blocks for group in groups]))
        return judgements

    def _groups(self, passage: Passage, block: range) -> list[Weighed]:
        groups = self.likelihood.groups(slice(block.start, block.stop))
        if any(group.slots == NOTHING for group in groups):
            spec = likelihood.spec(self.likelihood)
            raise UnmaskError(f"{spec} needs the order in which a text was written: score by path alone")
        length = len(passage.text)
        return [
            Weighed(Cloze(passage, _numbers(slots, length), _numbers(counted, length)), weight)
            for slots, counted, weight in groups
        ]


@way("elbo")
@dataclass(frozen=True)
class Elbo(Way):
    """A lower bound of log p, estimated: random parts of the text are hidden and predicted (LLaDA, arXiv 2502.09992).

    How many tokens are hidden is uniform, and so is which. Texts of one prompt and length see the same masks.
    """

    n: int = 128  # masks per block

    def __post_init__(self) -> None:
        if self.n < 2:
            raise UnmaskError(f"n={self.n} does not work: choose 2 or more, so that the error can be told")

    def __call__(self, passages: Sequence[Passage], denoiser: Denoiser, seed: int) -> list[Judgement]:
        every = [[self._masks(passage, number, seed) for number in range(len(passage.blocks))] for passage in passages]
        answers = Answers(denoiser, (mask for blocks in every for masks in blocks for mask in masks))
        judgements = []
        for blocks in every:
            variance = fsum(self._variance(masks, answers) for masks in blocks)
            masks = [mask for masks in blocks for mask in masks]
            judgements.append(answers.judgement(answers.by_slot(masks), masks, sqrt(variance)))
        return judgements

    def _masks(self, passage: Passage, number: int, seed: int) -> list[Weighed]:
        """Slots of a block, hidden together with all that comes after it."""
        block = passage.blocks[number]
        noise = Noise.root(torch.tensor([key(passage.prompt)]), seed)
        uniform = noise.uniform("sample", number, torch.arange(len(block) + 1)[None], self.n)[0]  # (slot, mask)
        counts = (1 + (uniform[-1] * len(block)).long()).tolist()
        ranks = uniform[:-1].argsort(dim=0).T.tolist()
        parts = [tuple(sorted(block[slot] for slot in rank[:count])) for rank, count in zip(ranks, counts, strict=True)]
        after = tuple(range(block.stop, len(passage.text)))
        return [Weighed(Cloze(passage, part + after, part), len(block) / len(part) / self.n) for part in parts]

    def _variance(self, masks: Sequence[Weighed], answers: Answers) -> float:
        """Of the mean, from the masks' own estimates."""
        estimates = [self.n * mask.weight * fsum(answers.logps[mask.cloze]) for mask in masks]
        mean = fsum(estimates) / self.n
        return fsum((estimate - mean) ** 2 for estimate in estimates) / (self.n - 1) / self.n


def _numbers(slots: Slots, length: int) -> tuple[int, ...]:
    return tuple(range(length)[slots]) if isinstance(slots, slice) else slots
