"""Questions that several decoders ask of one network, answered by one forward.

Rows do not see one another, so an answer does not depend on what shares the forward; on a CPU not in a single bit. Requests that start together and have equal settings decode as one batch.

What a decoder does between two forwards is then done once for all of them. A ticket that is cancelled takes its rows
away before the next forward. One that ends before the others is answered at once. All other requests are alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad

from unmask.core import Beliefs, CacheView, Canvas, Decoded, Denoiser, Session
from unmask.core.shapes import Columns, PerRow
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.runs.generation import DenoiserWrapper, Generation
from unmask.runs.settings import Decoding
from unmask.serve.queue import Ticket
from unmask.serve.request import Request
from unmask.serve.stream import Observer

WIDER = 2  # rows are at most so many times as wide as others of their forward, which are padded to them


@dataclass(frozen=True)
class Question:
    denoiser: Denoiser
    canvas: Canvas
    at: Columns
    cache: CacheView | None
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
        return replace(self, canvas=self.canvas.rows(rows), at=self.at[rows], cache=None, requests=requests)

    def joins(self, other: Question) -> bool:
        """Whether one forward may answer both. What a cache keeps belongs to the rows of one request."""
        narrow, wide = sorted((self.canvas.width, other.canvas.width))
        plain = self.denoiser.refresh is None
        return plain and self.denoiser is other.denoiser and wide <= WIDER * narrow


def answer(questions: Sequence[Question]) -> list[Beliefs]:
    """Of questions that join, by one forward."""
    denoiser, *_ = (question.denoiser for question in questions)
    if len(questions) == 1:
        return [denoiser(questions[0].canvas, questions[0].at, questions[0].cache)]
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


try:
    from greenlet import GreenletExit, greenlet
except ImportError:
    raise UnmaskError("the engine needs greenlet: pip install 'unmask[serve]'") from None


class LeftError(Exception):
    """Thrown into a cohort some of whose tickets were cancelled: its decoder's question is asked again without them."""


class Cohort:
    """Tickets decoded in one coroutine, and the question that their decoder waits with."""

    def __init__(self, settings: Hashable, tickets: Sequence[Ticket], decode: Callable[[Cohort], None]):
        self.settings, self.tickets = settings, tickets
        self.left: set[int] = set()  # numbers of the tickets that were cancelled
        self.question: Question | None = None
        self._coroutine = greenlet(partial(decode, self))

    def __len__(self) -> int:
        """Requests being decoded: neither answered nor known to be cancelled."""
        return sum(not ticket.ended and number not in self.left for number, ticket in enumerate(self.tickets))

    @property
    def live(self) -> list[Ticket]:
        return [ticket for ticket in self.tickets if ticket.wanted]

    def resume(self, *beliefs: Beliefs) -> None:
        self.question = self._coroutine.switch(*beliefs)

    def throw(self, error: BaseException) -> None:
        question = self._coroutine.throw(error)
        self.question = None if self._coroutine.dead else question

    def end(self) -> None:
        self.throw(GreenletExit())

    def asleep(self, question: Question) -> Beliefs:
        """Inside its coroutine: sleep until the question is answered."""
        assert self._coroutine.parent is not None
        return self._coroutine.parent.switch(question)

    def notices(self) -> bool:
        """Whether tickets were cancelled since it last looked."""
        before, numbered = len(self.left), enumerate(self.tickets)
        self.left.update(number for number, ticket in numbered if ticket.cancelled and not ticket.ended)
        return len(self.left) > before

    def decode(self, model: Model, around: DenoiserWrapper) -> None:
        """Inside its coroutine: answer every ticket as `unmask generate` does."""
        requests = [ticket.request for ticket in self.tickets]
        observers = [Observer(Generation(model, each.decoding, each.template), each) for each in requests]
        if update := observers[0].begin():  # only one that is alone is told anything before its answer
            self.tickets[0].post(update)
        session = _session(model, requests, around)
        for frame in session:
            if update := observers[0].see(frame):
                self.tickets[0].post(update)
            self._answer(observers, session.ended(), frame.step)
        assert session.frame is not None
        self._answer(observers, dict(enumerate(session.results())), session.frame.step)

    def _answer(self, observers: Sequence[Observer], results: Mapping[int, Decoded], step: int) -> None:
        for number, decoded in results.items():
            if self.tickets[number].wanted:
                self.tickets[number].post(observers[number].end(decoded, step))


def _session(model: Model, requests: Sequence[Request], around: DenoiserWrapper) -> Session:
    first = requests[0]
    generation = Generation(model, first.decoding, first.template, under_meter=around)
    return Session(
        first.decoding.decoder,
        generation.denoiser(),
        generation.canvas([request.prompt for request in requests]),
        [request.decoding.seed for request in requests],
        first.decoding.adapter(model),
        listen=first.show == "trace",
    )


def settings_of(model: Model, ticket: Ticket) -> Hashable:
    """Equal for tickets that may decode as one batch; one that has to be alone is equal to no other.

    Rows are at most twice as wide as others of their batch. Those of a block-causal model begin at the same place of a
    block.
    """
    request, decoding = ticket.request, ticket.request.decoding
    own = request.show or request.grammar or request.template
    if ticket.alone or own or not _leaves_in_time(decoding):
        return id(ticket)
    size, block = len(request.prompt.ids), model.denoiser.block_size
    width = (size + decoding.length).bit_length()
    return repr(replace(decoding, seed=0)), width, size % block if block else 0


def _leaves_in_time(decoding: Decoding) -> bool:
    """Whether no problem of a batch waits for another one to end."""
    if decoding.decoder.writer.ends_together:
        return not decoding.early_end and not decoding.stop  # which may end a text before its schedule
    return decoding.decoder.announces_ends
