"""A decoder run n times at once, and the answer chosen among its samples: by score, or by a vote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch

from unmask.core import Decoder, Frame, Rows, decoder
from unmask.core.rows import first_of_each
from unmask.core.shapes import PerRow, Score
from unmask.errors import UnmaskError, check_above, check_at_least
from unmask.policies.likelihood import Likelihood, likelihood, predict_slots
from unmask.registry import ADDED


def _default_inner() -> Decoder:
    return decoder.make("low-confidence(temperature=0.8)")


@dataclass(frozen=True)
class Repeated(Decoder):
    """The base of decoders that sample another one; a subclass says how the answer is chosen."""

    n: int = 5  # number of samples; the i-th is that of a run under reseed(seed, i)
    inner: Decoder = field(default_factory=_default_inner)  # what is sampled

    likelihood: Likelihood | None = field(default=None, metadata={ADDED: True})  # score whole answers by it instead

    ranked: ClassVar[bool]  # True if the final rows are sorted by score instead of by sample

    def __post_init__(self) -> None:
        likelihood.coerce(self, "likelihood")
        check_at_least(1, n=self.n)
        if self.inner.choice != "score":
            raise UnmaskError(f"inner must choose by score, got {decoder.name(self.inner)!r}: votes cannot be nested")

    def __call__(self, rows: Rows) -> Iterator[Frame]:
        """Yield frames of all samples together. At the end each sample keeps its best row."""
        samples, last = rows.samples(self.n), None
        for last in self.inner(samples):
            assert last.group is not None
            yield replace(last, group=last.group // self.n, ended=None)
        if last is None or last.group is None:
            return
        best = first_of_each(last.group, last.score.sort(descending=True, stable=True).indices, 1)
        group = last.group // self.n
        score = self.weight(samples, last, best)
        if self.ranked:
            ranked = score.sort(descending=True, stable=True).indices
            ranked = ranked[group[best[ranked]].sort(stable=True).indices]
            best, score = best[ranked], score[ranked]
        if not torch.equal(score, last.score[best]) or best.tolist() != list(range(len(last.canvas))):
            yield Frame(last.canvas.rows(best), score, last.step, group=group[best], parent=best)

    def weight(self, samples: Rows, last: Frame, best: PerRow) -> Score:
        """Return the score of each sample's best row."""
        if self.likelihood is None:
            return last.score[best]
        return predict_slots(samples.after(last.rows(best)), self.likelihood).sum(1)

    @property
    def writer(self) -> Decoder:
        return self.inner.writer

    def max_forward_passes(self, length: int) -> int:
        scoring = 0 if self.likelihood is None else self.likelihood.forward_passes(slice(0, length))
        return self.n * (self.inner.max_forward_passes(length) + scoring)


@decoder("best-of")
class BestOf(Repeated):
    """Sample n times and take the answer of highest score."""

    ranked = True


@decoder("vote")
@dataclass(frozen=True)
class Vote(Repeated):
    """Sample n times and take the commonest answer (self-consistency, arXiv 2203.11171)."""

    weighted: bool = False  # weigh each sample by exp(score / temperature) instead of counting one vote each
    temperature: float = field(default=1.0, metadata={ADDED: True})  # weighted: high values approach one vote each

    ranked = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_above(0, temperature=self.temperature)

    @property
    def choice(self) -> str:
        return "weighted" if self.weighted else "majority"

    def weight(self, samples: Rows, last: Frame, best: PerRow) -> Score:
        return super().weight(samples, last, best) / self.temperature
