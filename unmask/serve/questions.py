"""Questions that several decoders ask of one network, answered by one forward.

Rows do not see one another, so an answer does not depend on what shares the forward; on a CPU not in a single bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from unmask.core import Beliefs, Canvas, Denoiser, Kept
from unmask.core.shapes import Columns, PerRow

WIDER = 2  # rows are at most so many times as wide as others of their forward, which are padded to them


@dataclass(frozen=True)
class Question:
    denoiser: Denoiser
    canvas: Canvas
    at: Columns
    kept: Kept | None
    requests: int = 1  # that wait for its answer

    @property
    def rows(self) -> int:
        return len(self.canvas)

    def parts(self, size: int) -> list[Question]:
        """At most `size` rows each. What a cache keeps is not divided."""
        if self.rows <= size or self.denoiser.refresh is not None:
            return [self]
        some = torch.arange(self.rows, device=self.at.device).split(size)
        return [self._part(rows) for rows in some]

    def _part(self, rows: PerRow) -> Question:
        requests = min(self.requests, len(rows))
        return replace(self, canvas=self.canvas.rows(rows), at=self.at[rows], kept=None, requests=requests)

    def joins(self, other: Question) -> bool:
        """Whether one forward may answer both. What a cache keeps belongs to the rows of one request."""
        narrow, wide = sorted((self.canvas.width, other.canvas.width))
        plain = self.denoiser.refresh is None
        return plain and self.denoiser is other.denoiser and wide <= WIDER * narrow


def answer(questions: Sequence[Question]) -> list[Beliefs]:
    """Of questions that join, by one forward."""
    denoiser, *_ = (question.denoiser for question in questions)
    if len(questions) == 1:
        return [denoiser(questions[0].canvas, questions[0].at, questions[0].kept)]
    beliefs = denoiser(*_merged(questions))
    parts, first = [], 0
    for question in questions:
        parts.append(_part(beliefs, first, question.at.shape[0], question.at.shape[1]))
        first += question.rows
    return parts


def together(parts: Sequence[Beliefs]) -> Beliefs:
    """The beliefs of a question's parts as those of the whole."""
    first, width = parts[0], parts[0].shape[1]
    if len(parts) == 1:
        return first
    ends = torch.tensor([part.shape[0] for part in parts], device=first.device).cumsum(0)

    def read(places: Tensor) -> Tensor:
        owner = torch.searchsorted(ends, places // width, right=True)
        pieces, order = [], []
        for number, part in enumerate(parts):
            own = (owner == number).nonzero()[:, 0]
            before = (int(ends[number]) - part.shape[0]) * width
            pieces.append(part.read(places[own] - before))
            order.append(own)
        return torch.cat(pieces)[torch.cat(order).argsort()]

    counts = [part.computed for part in parts if part.computed is not None]
    computed = torch.cat(counts) if len(counts) == len(parts) else None
    return replace(first, read=read, shape=(int(ends[-1]), width), computed=computed)


def _merged(questions: Sequence[Question]) -> tuple[Canvas, Columns]:
    """All rows padded on the left to the widest; columns asked for by repeating a row's last one."""
    width = max(question.canvas.width for question in questions)
    most = max(question.at.shape[1] for question in questions)
    tokens, pads, ats = [], [], []
    for question in questions:
        extra = width - question.canvas.width
        tokens.append(pad(question.canvas.tokens, (extra, 0)))
        pads.append(question.canvas.pad + extra)
        at = question.at + extra
        ats.append(torch.cat([at, at[:, -1:].expand(-1, most - at.shape[1])], dim=1))
    together, own = torch.cat(tokens), questions[0].canvas
    canvas = replace(
        own,
        tokens=together,
        order=torch.zeros_like(together),
        logp=torch.zeros_like(together, dtype=own.logp.dtype),
        pad=torch.cat(pads),
        problem=torch.arange(len(together), device=together.device),
        ragged=any(question.canvas.ragged or question.canvas.width < width for question in questions),
    )
    return canvas, torch.cat(ats)


def _part(beliefs: Beliefs, first: int, rows: int, width: int) -> Beliefs:
    """Of `rows` rows from the first on, at their first `width` asked columns."""
    most = beliefs.shape[1]

    def read(places: Tensor) -> Tensor:
        return beliefs.read((first + places // width) * most + places % width)

    computed = None if beliefs.computed is None else beliefs.computed[first : first + rows]
    return replace(beliefs, read=read, shape=(rows, width), computed=computed)
