"""Write a text, then mask the positions that the finished text makes unlikely and write them again.

A position is judged by its log p once it is hidden inside the finished text. The least likely share of positions is
masked and filled by a greedy adaptive path. The new text is kept where its score is higher; a row whose new text is
not better is done.

With a check, a text that passes is not repaired, the part that the check calls wrong is what is masked, and a new text
is better if the check says so, or if it says the same of both and the score is higher.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import ceil

import torch

from unmask.core import Decoder, Frame, Rows, decoder
from unmask.core.shapes import AtBool, AtFloat, PerRow
from unmask.decoders.adaptive import Adaptive
from unmask.errors import UnmaskError, check_above, check_at_least, check_between
from unmask.policies.likelihood import Interleaved, Likelihood, likelihood, predict_slots


@decoder("repair")
@dataclass(frozen=True)
class Repair(Decoder):
    inner: Decoder = field(default_factory=Adaptive)  # what writes the text; its best row is repaired
    rounds: int = 2  # most rounds of masking and writing
    share: float = 0.25  # share of the positions that a round masks
    likelihood: Likelihood = field(default_factory=Interleaved)  # what judges positions and texts

    def __post_init__(self) -> None:
        likelihood.coerce(self, "likelihood")
        check_at_least(1, rounds=self.rounds)
        check_above(0, share=self.share)
        check_between(0, 1, share=self.share)
        if self.inner.choice != "score" or self.inner.writer is not self.inner:
            raise UnmaskError("repair works on one text: write best-of(inner=repair) to repair every sample")

    def __call__(self, rows: Rows) -> Iterator[Frame]:
        frame = None
        for frame in self.inner(rows):
            yield replace(frame, ended=None)
        assert frame is not None
        every = rows.after(frame)
        parent = every.best(1)
        rows = every.keep(parent)
        verdict, wrong = rows.check()
        trying, number = (verdict < 1).nonzero()[:, 0], frame.step
        logp = rows.canvas.logp.gather(1, rows.slots)
        if len(trying):
            logp = logp.index_copy(0, trying, predict_slots(rows.keep(trying), self.likelihood))
        rows = rows.with_scores(logp.sum(1, keepdim=True))
        yield replace(rows.frame(number), parent=parent)
        for _ in range(self.rounds if len(trying) else 0):
            trial = start = rows.only(trying)
            for trial, steps in self._rewrite(start, logp[trying], wrong[trying]):
                number = max(number, int(steps.max()))
                yield rows.put(trying, trial).frame(number)
            fresh = predict_slots(trial, self.likelihood)
            said, where = trial.check()
            likelier = (said == verdict[trying]) & (fresh.sum(1) > logp[trying].sum(1))
            better = (likelier | (said > verdict[trying])).nonzero()[:, 0]
            trying = trying[better]
            if len(trying):
                logp = logp.index_copy(0, trying, fresh[better])
                rows = rows.put(trying, trial.keep(better)).leave()
            verdict, wrong = verdict.index_copy(0, trying, said[better]), wrong.index_copy(0, trying, where[better])
            rows = rows.with_scores(logp.sum(1, keepdim=True))
            yield rows.frame(number)
            trying = trying[verdict[trying] < 1]
            if not len(trying):
                return

    def _rewrite(self, rows: Rows, logp: AtFloat, wrong: AtBool) -> Iterator[tuple[Rows, PerRow]]:
        """Mask the least likely slots, of the wrong ones where they are known, and fill them from the last step on."""
        suspect = wrong | ~wrong.any(1, keepdim=True)
        ranked = logp.masked_fill(~suspect, torch.inf).sort(dim=1, stable=True).indices
        hidden = torch.zeros_like(wrong).scatter(1, ranked[:, : self._masks(rows.length)], True) & suspect
        steps = rows.canvas.order.gather(1, rows.slots).amax(1) + 1
        first = rows.slots.gather(1, hidden.byte().argmax(1, keepdim=True))
        rows = rows.remask(torch.where(hidden, rows.slots, first))
        yield rows, steps
        yield from Adaptive(block=rows.length).walk(rows, steps)

    def _masks(self, length: int) -> int:
        return ceil(self.share * length)

    def max_forward_passes(self, length: int) -> int:
        scoring = self.likelihood.forward_passes(slice(0, length))
        return self.inner.max_forward_passes(length) + scoring + self.rounds * (self._masks(length) + scoring)
