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
        """Yield frames of all samples together. At the end each sample keeps its best row.

        With a check, samples come in waves, each as many as there were before, until a text of the problem passes.
        """
        done = shown = rows.keep(rows.group[:0]).frame(0)  # the best rows of earlier waves, and the last frame
        places, drawn = rows.group[:0], 0  # the rows of the last frame that the best rows are
        while drawn < self.n and len(rows):
            which = range(drawn, min(self.n, 2 * drawn or 1) if rows.judge else self.n)
            samples, last, drawn = rows.samples(self.n, which), None, which.stop
            for frame in self.inner(samples):
                yield self._beside(frame, last, done, places)
                last, places = frame, len(frame.canvas) + torch.arange(len(places), device=places.device)
            if last is None or last.group is None:
                return
            best = first_of_each(last.group, last.score.sort(descending=True, stable=True).indices, 1)
            wave = replace(last.rows(best), score=self.weight(samples, last, best))
            passed = samples.after(wave).check().passed if rows.judge else best[:0]
            rows = rows.keep((~torch.isin(rows.group, last.group[best][passed] // self.n)).nonzero()[:, 0])
            shown, done, places = self._beside(last, None, done, places), wave.joined(done), torch.cat([best, places])
        yield from self._final(shown, done, places)

    def _beside(self, frame: Frame, last: Frame | None, done: Frame, places: PerRow) -> Frame:
        """Return a frame of one wave together with the best rows of earlier waves, which were shown at `places`."""
        assert frame.group is not None
        if not len(places):
            return replace(frame, group=frame.group // self.n, ended=None)
        assert done.group is not None
        if last is None or last.group is None:  # a new sample is shown as made from an earlier one of its problem
            parent = places[(frame.group[:, None] // self.n == done.group // self.n).byte().argmax(1)]
        elif frame.parent is None and len(last.canvas) != len(frame.canvas):
            parent = torch.searchsorted(last.group, frame.group)
        else:
            parent = torch.arange(len(frame.canvas), device=places.device) if frame.parent is None else frame.parent
        both, group = frame.joined(done), torch.cat([frame.group, done.group]) // self.n
        return replace(both, group=group, branch=frame.branch, parent=torch.cat([parent, places]))

    def _final(self, shown: Frame, done: Frame, places: PerRow) -> Iterator[Frame]:
        """Yield the best row of every sample, by problem, then by sample or by score, unless that was shown already."""
        assert done.group is not None
        order = done.group.sort(stable=True).indices
        if self.ranked:
            order = order[done.score[order].sort(descending=True, stable=True).indices]
            order = order[(done.group[order] // self.n).sort(stable=True).indices]
        final = done.rows(order)
        if not torch.equal(final.score, shown.score) or places[order].tolist() != list(range(len(shown.canvas))):
            yield replace(final, group=done.group[order] // self.n, parent=places[order])

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
