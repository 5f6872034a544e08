"""The engine behind the server, for Python: many requests are decoded together, and each is awaited by itself."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.runs.generation import Output
from unmask.runs.settings import DECODER, DecodingOptions, Placement
from unmask.runs.text import OnePrompt
from unmask.serve.request import (
    Completed,
    Event,
    PendingRequest,
    RefusedError,
    Request,
    RequestLimits,
    RequestOptions,
    Show,
    Update,
    read_request,
)
from unmask.serve.scheduler import OnForward, Replica, RequestQueue, Scheduler
from unmask.serve.structured import check_grammar

# Called when a request ends, with its outcome: `done`, `cancelled`, or the code of the error that ended it.
OnEnd = Callable[[PendingRequest, str, Completed | None], None]
MakeReplica = Callable[[RequestQueue], Replica]
CANCELLED = "the request was cancelled"


class Updates:
    """The updates of the answers to a request as they come, each with the number of its answer.

    The last update of a number has the answer. Answers are decoded independently, and cancelled together.
    """

    def __init__(self, queue: RequestQueue, requests: Sequence[Request], seconds: float, on_end: OnEnd):
        self._loop, self._events = asyncio.get_running_loop(), asyncio.Queue[tuple[int, Event]]()
        self._queue, self._on_end = queue, on_end
        self._seconds, self._deadline = seconds, self._loop.time() + seconds
        self.count = len(requests)
        self._open: dict[int, PendingRequest] = {}  # answers that have not ended
        for number, request in enumerate(requests):
            self._open[number] = pending = PendingRequest(request, partial(self._post, number))
            try:
                queue.put(pending)
            except RefusedError as error:
                self._end(number, error.code or "error")
                self.cancel()
                raise

    async def __aiter__(self) -> AsyncIterator[Update]:
        while self._open:
            number, event = await self._next()
            if number not in self._open:  # cancelled by a different task
                continue
            if isinstance(event, Exception):
                self._end(number, getattr(event, "code", None) or "error")
                raise event
            if event.answer is not None:
                self._end(number, "done", event.answer)
            yield replace(event, number=number)

    async def answers(self) -> list[Completed]:
        answers = {update.number: update.answer async for update in self if update.answer is not None}
        if len(answers) < self.count:
            raise RefusedError(CANCELLED, "shutting_down")
        return [answers[number] for number in range(self.count)]

    async def answer(self) -> Completed:
        """Return the only answer."""
        return (await self.answers())[0]

    def cancel(self) -> None:
        """Cancel all answers that have not ended."""
        for number in list(self._open):
            self._end(number, "cancelled")
            self._post(number, RefusedError(CANCELLED, "shutting_down"))  # wakes a task that waits for an update

    def _post(self, number: int, event: Event) -> None:
        """Take an event from a thread of a replica."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, so nothing waits for the event
            self._loop.call_soon_threadsafe(self._events.put_nowait, (number, event))

    async def _next(self) -> tuple[int, Event]:
        try:
            async with asyncio.timeout_at(self._deadline):
                return await self._events.get()
        except asyncio.CancelledError:
            self.cancel()
            raise
        except TimeoutError:
            for number in list(self._open):
                self._end(number, "timeout")
            sentence = f"the request took more than {self._seconds:g} s: shorten it or search less"
            raise RefusedError(sentence, "timeout") from None

    def _end(self, number: int, outcome: str, answer: Completed | None = None) -> None:
        pending = self._open.pop(number)
        pending.cancel()
        self._queue.record_end(pending)
        self._on_end(pending, outcome, answer)


class AsyncEngine:
    """Decodes many requests together. Every answer is what `unmask.generate` returns for the same arguments.

    `model` is a model, its name, or a list of models that are copies on several devices. A request begins within
    a few steps of those that are being decoded, waits where `limits` say so, and is cancelled with its task.
    Functions in the lists `on_forward` and `on_end` are called at every forward pass and every end of a request.
    """

    def __init__(
        self,
        model: Model | str | Sequence[Model],
        limits: RequestLimits | None = None,
        *,
        decoding: Mapping[str, Any] | None = None,
        replicas: Sequence[MakeReplica] = (),
    ):
        models = [Placement().load(model)] if isinstance(model, str) else model
        models = [models] if isinstance(models, Model) else list(models)
        if not models:
            raise UnmaskError("an engine needs at least 1 model, got none")
        self.model, self.limits = models[0], limits or RequestLimits()
        self.decoding = dict(decoding or {})  # defaults of requests
        self.default_decoder = self.decoding.get("decoder", DECODER)
        self.default_length = self.decoding.get("length") or self.model.default_length
        self.on_forward: list[OnForward] = []
        self.on_end: list[OnEnd] = []
        local = [partial(Scheduler, copy, self.limits, self._forwarded) for copy in models]
        made = replicas or local
        self.queue = RequestQueue(self.limits.waiting, self.limits.running * len(made), len(made))
        self.replicas = [make(self.queue) for make in made]
        for replica in self.replicas:
            replica.start()

    async def __aenter__(self) -> AsyncEngine:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def generate(
        self, prompt: OnePrompt, *, timeout: float | None = None, **decoding: Unpack[DecodingOptions]
    ) -> Output:
        """Answer a prompt: text, chat messages or token ids. `timeout` is in seconds."""
        return (await self.submit(self.request(prompt, **decoding), timeout).answer()).output

    async def stream(
        self,
        prompt: OnePrompt,
        *,
        show: Show = "text",
        timeout: float | None = None,
        **decoding: Unpack[DecodingOptions],
    ) -> AsyncIterator[Update]:
        """Yield updates as they come: stable text, and by `show` drafts or a trace. The last has the answer."""
        updates = self.submit(self.request(prompt, show=show, **decoding), timeout)
        try:
            async for update in updates:
                yield update
        finally:
            updates.cancel()

    def request(self, prompt: OnePrompt, **options: Unpack[RequestOptions]) -> Request:
        """Return a request that was checked against the limits. Options that are None take the engine's defaults."""
        chosen: dict[str, Any] = dict(self.decoding)
        if options.get("template") is not None:
            chosen.pop("length", None)
        chosen |= {name: value for name, value in options.items() if value is not None or name not in chosen}
        request = read_request(self.model, prompt, chosen, self.limits)
        check_grammar(self.model, request)
        return request

    def submit(self, request: Request, timeout: float | None = None, count: int = 1) -> Updates:
        """Put a request in the queue, or refuse it. The caller cancels the updates if it stops reading them.

        It gets `count` independent answers, the i-th with the seed `reseed(seed, i)`.
        """
        requests = [request.sample(number) for number in range(count)]
        return Updates(self.queue, requests, min(timeout or math.inf, self.limits.max_seconds), self._ended)

    @property
    def ready(self) -> bool:
        return not self.queue.closed and all(replica.alive for replica in self.replicas)

    @property
    def broken(self) -> bool:
        """Return whether a device failed: only a new process can use it again."""
        return any(replica.broken for replica in self.replicas)

    @property
    def waiting(self) -> int:
        return len(self.queue)

    @property
    def running(self) -> int:
        return sum(replica.running for replica in self.replicas)

    def drain(self) -> None:
        """Refuse new requests and those that wait; requests that are being decoded go on."""
        self.queue.close()

    async def close(self, seconds: float | None = None) -> None:
        """Drain, and wait until everything is answered, or for some seconds."""
        self.drain()
        for replica in self.replicas:
            await asyncio.to_thread(replica.join, seconds)
            replica.stop()

    def _forwarded(self, rows: int, requests: int) -> None:
        for call in self.on_forward:
            call(rows, requests)

    def _ended(self, pending: PendingRequest, outcome: str, answer: Completed | None) -> None:
        for call in self.on_end:
            call(pending, outcome, answer)
