"""Many requests decoded together: decoders run side by side, and one forward answers what they ask.

Every request runs the code of `unmask generate` in a coroutine of its own, which sleeps whenever its decoder asks the
network. A step takes questions that wait, oldest first, answers them by one forward and wakes their decoders. So a
request begins at the next step, whatever the others are doing, and decoders need not know of one another.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

import torch

from unmask.core import Beliefs, Canvas, Denoiser, Frame, Kept, Wrapper
from unmask.core.shapes import Columns
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.runs.batching import out_of_memory
from unmask.runs.generation import Generation
from unmask.serve.observer import Observer
from unmask.serve.questions import Question, answer, together
from unmask.serve.refusals import TooLargeError
from unmask.serve.request import Request, Update
from unmask.serve.structured import Constrained
from unmask.serve.ticket import Ticket

try:
    from greenlet import GreenletExit, getcurrent, greenlet
except ImportError:
    raise UnmaskError("the engine needs greenlet: pip install 'unmask[serve]'") from None

log = logging.getLogger("unmask.serve")


class Shared(Wrapper):
    """Leaves every question to the batcher, in parts that fit its batch, and sleeps until they are answered."""

    def __init__(self, inner: Denoiser, batcher: Batcher):
        super().__init__(inner)
        self.batcher = batcher

    def __call__(self, canvas: Canvas, at: Columns, kept: Kept | None = None) -> Beliefs:
        parts = Question(self.inner, canvas, at, kept).parts(self.batcher.batch)
        return together([_asleep(part) for part in parts])


def _asleep(question: Question) -> Beliefs:
    main = getcurrent().parent
    assert main is not None
    return main.switch(question)


class Running:
    """A ticket being decoded, and the question that its decoder waits with."""

    def __init__(self, ticket: Ticket, decode: Callable[[Ticket], None]):
        self.ticket = ticket
        self.question: Question | None = None
        self._coroutine = greenlet(partial(decode, ticket))

    def resume(self, *beliefs: Beliefs) -> None:
        self.question = self._coroutine.switch(*beliefs)

    def end(self, error: BaseException) -> None:
        self.question = None
        self._coroutine.throw(error)


class Batcher:
    """`answered` is told the rows and the requests of every forward."""

    def __init__(self, model: Model, batch: int, answered: Callable[[int, int], None] = lambda rows, requests: None):
        self.model, self.batch, self.answered = model, batch, answered
        self.broken = False  # whether the device failed for good
        self.again: list[Ticket] = []  # did not fit the memory: to be started once more
        self._running: deque[Running] = deque()  # the question that has waited longest first
        self._answering = 0  # of them taken out for the forward that is being computed

    def __len__(self) -> int:
        return len(self._running) + self._answering

    def start(self, ticket: Ticket) -> None:
        self._advance(Running(ticket, self._decode))

    def step(self) -> None:
        """One forward, and all that its answers let decoders do."""
        self._drop_cancelled()
        if not self._running:
            return
        group = self._take()
        self._answering = len(group)
        answers = self._answer([running.question for running in group if running.question is not None])
        self._answering = 0
        for running, beliefs in zip(group, answers, strict=True):
            if isinstance(beliefs, BaseException):
                running.end(beliefs)
            else:
                self._advance(running, beliefs)

    def stop(self, error: Exception) -> None:
        """End everything."""
        while self._running:
            self._running.popleft().end(error)

    def _advance(self, running: Running, *beliefs: Beliefs) -> None:
        running.resume(*beliefs)
        if running.question is not None:
            self._running.append(running)

    def _drop_cancelled(self) -> None:
        for running in [running for running in self._running if running.ticket.cancelled]:
            self._running.remove(running)
            running.end(GreenletExit())

    def _take(self) -> list[Running]:
        """The oldest question, and as many others as may join it and fit the batch."""
        group = [self._running.popleft()]
        first = group[0].question
        assert first is not None
        rows, others = first.rows, deque[Running]()
        for running in self._running:
            question = running.question
            assert question is not None
            if rows + question.rows <= self.batch and first.joins(question):
                group.append(running)
                rows += question.rows
            else:
                others.append(running)
        self._running = others
        return group

    def _answer(self, questions: Sequence[Question]) -> list[Beliefs | BaseException]:
        """A forward that does not fit the memory is halved, and those to come have no more rows than its halves."""
        rows = sum(question.rows for question in questions)
        try:
            answers = answer(questions)
            self.answered(rows, len(questions))
            return list(answers)
        except Exception as error:
            full, failure = out_of_memory(error), error.with_traceback(None)  # a traceback would hold the tensors
        if full:
            torch.cuda.empty_cache()
            self.batch = max(1, min(self.batch, rows // 2))
            log.warning("out of memory: forwards have at most %d rows from now on", self.batch)
        if len(questions) > 1:
            half = (len(questions) + 1) // 2
            return [*self._answer(questions[:half]), *self._answer(questions[half:])]
        parts = questions[0].parts(max(1, rows // 2))
        return [self._answer_parts(parts) if full and len(parts) > 1 else failure]

    def _answer_parts(self, parts: Sequence[Question]) -> Beliefs | BaseException:
        """Of one question, a few rows at a time."""
        answers = [self._answer([part])[0] for part in parts]
        failed = [answer for answer in answers if isinstance(answer, BaseException)]
        return failed[0] if failed else together([answer for answer in answers if isinstance(answer, Beliefs)])

    def _decode(self, ticket: Ticket) -> None:
        """The life of a ticket, in its coroutine."""
        try:
            ticket.post(self._answered(ticket))
        except UnmaskError as error:
            ticket.post(error)
        except Exception as error:
            if not out_of_memory(error):
                log.error("a request failed", exc_info=error)
                self.broken |= isinstance(error, torch.AcceleratorError)
                ticket.post(error)
            elif not ticket.retried and not ticket.told:
                ticket.retried = True
                self.again.append(ticket)
            else:
                ticket.post(TooLargeError("the memory does not hold this request: shorten it or search less"))

    def _answered(self, ticket: Ticket) -> Update:
        request = ticket.request
        generation = Generation(self.model, request.decoding, request.template, around=partial(self._around, request))
        observer = Observer(generation, request)

        def watch(numbers: list[int], frame: Frame) -> None:
            del numbers
            if update := observer.see(frame):
                ticket.post(update)

        if update := observer.begin():
            ticket.post(update)
        return observer.end(generation.outputs([request.prompt], watch=watch, listen=request.show == "trace")[0])

    def _around(self, request: Request, denoiser: Denoiser) -> Denoiser:
        shared = Shared(denoiser, self)
        return shared if request.grammar is None else Constrained(shared, self.model, request.grammar)
