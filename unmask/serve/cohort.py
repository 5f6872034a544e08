"""Requests that start together and have equal settings decode as one batch.

What a decoder does between two forwards is then done once for all of them. A ticket that is cancelled takes its rows
away before the next forward. One that ends before the others is answered at once. All other requests are alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from unmask.core import Beliefs, Decoded, Session, block_size
from unmask.decoders import Adaptive, BestFirstSearch, Dream, OrderTokenSearch, Threshold
from unmask.decoders.path import SinglePath
from unmask.decoders.repeat import Repeated
from unmask.decoders.visible_search import VisibleSearch
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.runs.decoding import Decoding
from unmask.runs.generation import Around, Generation
from unmask.serve.observer import Observer
from unmask.serve.questions import Question
from unmask.serve.request import Request
from unmask.serve.ticket import Ticket

try:
    from greenlet import GreenletExit, greenlet
except ImportError:
    raise UnmaskError("the engine needs greenlet: pip install 'unmask[serve]'") from None

SCHEDULED = (SinglePath, Dream, OrderTokenSearch, VisibleSearch)  # all problems of a batch end at the same step
LEAVING = (Adaptive, Threshold, BestFirstSearch)  # their frames say which problems have ended


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

    def decode(self, model: Model, around: Around) -> None:
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


def _session(model: Model, requests: Sequence[Request], around: Around) -> Session:
    first = requests[0]
    generation = Generation(model, first.decoding, first.template, around=around)
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
    size, block = len(request.prompt.ids), block_size(model.denoiser)
    width = (size + decoding.length).bit_length()
    return repr(replace(decoding, seed=0)), width, size % block if block else 0


def _leaves_in_time(decoding: Decoding) -> bool:
    """Whether no problem of a batch waits for another one to end."""
    decoder = decoding.decoder.inner if isinstance(decoding.decoder, Repeated) else decoding.decoder
    if isinstance(decoder, SCHEDULED):
        return not decoding.early_end and not decoding.stop  # which may end a text before its schedule
    return isinstance(decoding.decoder, LEAVING)
