"""Requests that are about to begin, gathered by their settings.

Between two forwards a decoder works once for all requests of its cohort. Where requests end one by one, those that take
their places would each be a cohort of its own, and many small cohorts cost more than the forwards that they share. So a
request waits a few forwards for others, unless few with its settings are being decoded. Many requests decoded together: decoders run side by side, and one forward answers what they ask.

Every cohort runs the code of `unmask generate` in a coroutine of its own, which sleeps whenever its decoder asks the
network. A step takes questions that wait, oldest first, answers them by one forward and wakes their decoders. So a
request begins within a few steps, whatever the others are doing, and decoders need not know of one another. A thread that decodes tickets of a queue with one loaded model."""

from __future__ import annotations

import logging
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

import torch

from unmask.core import Beliefs, CacheView, Canvas, Denoiser, Wrapper
from unmask.core.shapes import Columns
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.runs.worker import out_of_memory
from unmask.serve.batch import Cohort, LeftError, Question, answer, settings_of, together
from unmask.serve.errors import ClosingError, TooLargeError
from unmask.serve.queue import Ticket, TicketQueue
from unmask.serve.request import RequestLimits
from unmask.serve.structured import Constrained

PART = 8  # nobody waits any longer in a group that is at least this part of those being decoded with its settings
PATIENCE = 8  # forwards that a group waits at most


@dataclass
class Group:
    tickets: list[Ticket] = field(default_factory=list)
    waited: int = 0  # forwards

    @property
    def wanted(self) -> list[Ticket]:
        return [ticket for ticket in self.tickets if ticket.wanted]


class Gathering:
    def __init__(self, model: Model):
        self.model = model
        self._groups: defaultdict[Hashable, Group] = defaultdict(Group)

    def __len__(self) -> int:
        return sum(len(group.wanted) for group in self._groups.values())

    def add(self, tickets: Iterable[Ticket]) -> None:
        for ticket in tickets:
            self._groups[settings_of(self.model, ticket)].tickets.append(ticket)

    def wait(self) -> None:
        """For one more forward."""
        for group in self._groups.values():
            group.waited += 1

    def take(self, decoded: Mapping[Hashable, int]) -> Iterator[tuple[Hashable, list[Ticket]]]:
        """The groups that need not wait any longer, given how many requests of which settings are being decoded."""
        for settings, group in list(self._groups.items()):
            tickets = group.wanted
            if PART * len(tickets) >= decoded.get(settings, 0) or group.waited >= PATIENCE or not tickets:
                del self._groups[settings]
                yield settings, tickets

    def take_all(self) -> list[Ticket]:
        tickets = [ticket for group in self._groups.values() for ticket in group.wanted]
        self._groups.clear()
        return tickets


log = logging.getLogger("unmask.serve")


class Shared(Wrapper):
    """Leaves every question to the batcher, in parts that fit its batch, and sleeps until they are answered.

    Nothing is computed for tickets that were cancelled: their rows are told to be certain of any token, and soon end.
    """

    def __init__(self, inner: Denoiser, batcher: Batcher, cohort: Cohort):
        super().__init__(inner)
        self.batcher, self.cohort = batcher, cohort

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        while True:
            with suppress(LeftError):
                return self._live(canvas, at, cache) if self.cohort.left else self._whole(canvas, at, cache)

    def _live(self, canvas: Canvas, at: Columns, cache: CacheView | None) -> Beliefs:
        left = torch.tensor(sorted(self.cohort.left), device=self.device)
        live = (~torch.isin(canvas.problem, left)).nonzero()[:, 0]
        beliefs = Beliefs(lambda places: places, (0, at.shape[1]), self.vocab, self.mask_id, self.device)
        if len(live):
            beliefs = self._whole(canvas.rows(live), at[live], cache and cache.take_listed(live.tolist()))
        return beliefs.among(live, len(canvas), int(self.mask_id == 0), self.dtype)

    def _whole(self, canvas: Canvas, at: Columns, cache: CacheView | None) -> Beliefs:
        question = Question(self.inner, canvas, at, cache, len(self.cohort))
        return together([self.cohort.asleep(part) for part in question.parts(self.batcher.batch)])


class Batcher:
    """`answered` is told the rows and the requests of every forward."""

    def __init__(self, model: Model, batch: int, answered: Callable[[int, int], None] = lambda rows, requests: None):
        self.model, self.batch, self.answered = model, batch, answered
        self.broken = False  # whether the device failed for good
        self.again: list[Ticket] = []  # to be started once more: they did not fit the memory, or their cohort failed
        self._gathering = Gathering(model)
        self._waiting: deque[Cohort] = deque()  # the question that has waited longest first
        self._size = 0  # counted after every step, since other threads ask for it

    def __len__(self) -> int:
        """Requests being decoded or about to be."""
        return self._size

    def start(self, *tickets: Ticket) -> None:
        """Those with equal settings decode as one batch, which begins at one of the next steps."""
        self._gathering.add(tickets)
        self._count()

    def start_again(self) -> None:
        tickets, self.again = self.again, []
        self.start(*tickets)

    def step(self) -> None:
        """One forward, and all that its answers let decoders do."""
        self._drop_cancelled()
        self._begin()
        if self._waiting:
            cohorts = self._take()
            answers = self._answer([cohort.question for cohort in cohorts if cohort.question is not None])
            for cohort, beliefs in zip(cohorts, answers, strict=True):
                if isinstance(beliefs, BaseException):
                    cohort.throw(beliefs)
                else:
                    cohort.resume(beliefs)
                self._wait(cohort)
            self._gathering.wait()
        self._count()

    def stop(self, error: Exception) -> None:
        """End everything."""
        for cohort in self._waiting:
            cohort.end()
        for ticket in chain(self.again, self._gathering.take_all(), *(cohort.tickets for cohort in self._waiting)):
            ticket.post(error)
        self._waiting.clear()
        self.again.clear()
        self._count()

    def _begin(self) -> None:
        decoded = Counter[Hashable]()
        for cohort in self._waiting:
            decoded[cohort.settings] += len(cohort)
        for settings, tickets in self._gathering.take(decoded):
            for first in range(0, len(tickets), self.batch):
                cohort = Cohort(settings, tickets[first : first + self.batch], self._decode)
                cohort.resume()
                self._wait(cohort)

    def _wait(self, cohort: Cohort) -> None:
        if cohort.question is not None:
            self._waiting.append(cohort)

    def _count(self) -> None:
        self._size = len(self._gathering) + sum(map(len, self._waiting))

    def _drop_cancelled(self) -> None:
        for cohort in [cohort for cohort in self._waiting if cohort.notices()]:
            self._waiting.remove(cohort)
            if cohort.live:
                cohort.throw(LeftError())
                self._wait(cohort)
            else:
                cohort.end()

    def _take(self) -> list[Cohort]:
        """The oldest question, and as many others as may join it and fit the batch."""
        taken = [self._waiting.popleft()]
        first = taken[0].question
        assert first is not None
        rows, others = first.rows, deque[Cohort]()
        for cohort in self._waiting:
            question = cohort.question
            assert question is not None
            if rows + question.rows <= self.batch and first.joins(question):
                taken.append(cohort)
                rows += question.rows
            else:
                others.append(cohort)
        self._waiting = others
        return taken

    def _answer(self, questions: Sequence[Question]) -> list[Beliefs | BaseException]:
        """A forward that does not fit the memory is halved, and those to come have no more rows than its halves."""
        rows = sum(question.rows for question in questions)
        try:
            answers = answer(questions)
            self.answered(rows, sum(question.requests for question in questions))
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

    def _decode(self, cohort: Cohort) -> None:
        """The life of a cohort, in its coroutine."""
        try:
            cohort.decode(self.model, partial(self._around, cohort))
        except Exception as error:
            self.broken |= isinstance(error, torch.AcceleratorError)
            if len(cohort.tickets) == 1 or self.broken:
                for ticket in cohort.live:
                    self._fail(ticket, error)
            else:
                self._begin_again(cohort.live, error)

    def _begin_again(self, tickets: Sequence[Ticket], error: Exception) -> None:
        """Each alone: what one of them does to the others cannot be known. Nothing of them was told."""
        log.warning("%d requests begin again, each by itself: %s", len(tickets), error)
        for ticket in tickets:
            ticket.alone = True
        self.again.extend(tickets)

    def _fail(self, ticket: Ticket, error: Exception) -> None:
        if isinstance(error, UnmaskError):
            ticket.post(error)
        elif not out_of_memory(error):
            log.error("a request failed", exc_info=error)
            ticket.post(error)
        elif not ticket.retried and not ticket.told:
            ticket.retried = True
            self.again.append(ticket)
        else:
            ticket.post(TooLargeError("the memory does not hold this request: shorten it or search less"))

    def _around(self, cohort: Cohort, denoiser: Denoiser) -> Denoiser:
        shared, grammar = Shared(denoiser, self, cohort), cohort.tickets[0].request.grammar
        return shared if grammar is None else Constrained(shared, self.model, grammar)


log = logging.getLogger("unmask.serve")


class Replica:
    def __init__(self, model: Model, limits: RequestLimits, answered: Callable[[int, int], None], queue: TicketQueue):
        self.model, self.queue, self.limits = model, queue, limits
        self.batcher = Batcher(model, limits.batch_rows, answered)
        self.stopped = False
        self._thread = threading.Thread(target=self._run, name=f"unmask-{model.name}", daemon=True)

    def start(self) -> None:
        self.queue.join()
        self._thread.start()

    def stop(self) -> None:
        """Give up what is being decoded."""
        self.stopped = True

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def broken(self) -> bool:
        """A device that failed fails for good: only another process can use it."""
        return self.batcher.broken

    @property
    def running(self) -> int:
        return len(self.batcher)

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def _run(self) -> None:
        # Coroutines leave and enter inference mode in any order: it has to hold outside all of them.
        with torch.inference_mode():
            while not self.stopped and not self.broken and not (self.queue.closed and not len(self.batcher)):
                try:
                    self._turn()
                except Exception as error:  # of the batcher itself: no request may be left waiting for an answer
                    log.exception("a step failed")
                    self.batcher.stop(error)
            self.batcher.stop(ClosingError("the server was stopped before this request was finished"))
            self.queue.leave()

    def _turn(self) -> None:
        if not len(self.batcher):
            self.queue.wait()
        self.batcher.start(*self.queue.take_share(self.limits.running - len(self.batcher)))
        self.batcher.step()
        self.batcher.start_again()
