"""The engine behind the server, for Python: many requests are decoded together, and each is awaited by itself."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
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
    """The updates of one request as they come; the last has the answer."""

    def __init__(self, queue: RequestQueue, request: Request, seconds: float, on_end: OnEnd):
        self._loop, self._events = asyncio.get_running_loop(), asyncio.Queue[Event]()
        self._pending = PendingRequest(request, self._post)
        self._queue, self._on_end = queue, on_end
        self._seconds, self._deadline = seconds, self._loop.time() + seconds
        self._ended = False
        try:
            queue.put(self._pending)
        except RefusedError as error:
            on_end(self._pending, error.code or "error", None)
            raise

    async def __aiter__(self) -> AsyncIterator[Update]:
        while not self._ended:
            try:
                event = await self._next()
            except asyncio.CancelledError:
                self.cancel()
                raise
            if self._ended:  # cancelled by a different task
                return
            if isinstance(event, Exception):
                self._end(getattr(event, "code", None) or "error")
                raise event
            if event.answer is not None:
                self._end("done", event.answer)
            yield event

    async def answer(self) -> Completed:
        async for update in self:
            if update.answer is not None:
                return update.answer
        raise RefusedError(CANCELLED, "shutting_down")

    def cancel(self) -> None:
        """Cancel the request, unless it has ended."""
        if not self._ended:
            self._end("cancelled")
            self._events.put_nowait(RefusedError(CANCELLED, "shutting_down"))  # wakes a task that waits for an update

    def _post(self, event: Event) -> None:
        """Take an event from a thread of a replica."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, so nothing waits for the event
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    async def _next(self) -> Event:
        try:
            async with asyncio.timeout_at(self._deadline):
                return await self._events.get()
        except TimeoutError:
            sentence = f"the request took more than {self._seconds:g} s: shorten it or search less"
            return RefusedError(sentence, "timeout")

    def _end(self, outcome: str, answer: Completed | None = None) -> None:
        self._ended = True
        self._pending.cancel()
        self._queue.record_end(self._pending)
        self._on_end(self._pending, outcome, answer)


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
        self.queue = RequestQueue(self.limits.waiting, self.limits.running * len(replicas or local))
        self.replicas = [make(self.queue) for make in replicas or local]
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

    def submit(self, request: Request, timeout: float | None = None) -> Updates:
        """Put a request in the queue, or refuse it. The caller cancels the updates if it stops reading them."""
        return Updates(self.queue, request, min(timeout or math.inf, self.limits.max_seconds), self._ended)

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


class Choices:
    """Independent answers to one request, the i-th with the seed `reseed(seed, i)`; they are cancelled together."""

    def __init__(self, engine: AsyncEngine, request: Request, timeout: float | None, count: int = 1):
        self.every: list[Updates] = []
        try:
            for number in range(count):
                self.every.append(engine.submit(request.sample(number), timeout))
        except RefusedError:
            self.cancel()
            raise

    def cancel(self) -> None:
        for updates in self.every:
            updates.cancel()

    async def answers(self) -> list[Completed]:
        return await asyncio.gather(*(updates.answer() for updates in self.every))

    async def __aiter__(self) -> AsyncIterator[tuple[int, Update]]:
        """Yield the updates of all answers as they come, each with the index of its answer."""
        events: asyncio.Queue[tuple[int, Event | None]] = asyncio.Queue()

        async def follow(index: int, updates: Updates) -> None:
            try:
                async for update in updates:
                    events.put_nowait((index, update))
                events.put_nowait((index, None))
            except Exception as error:
                events.put_nowait((index, error))

        tasks = [asyncio.ensure_future(follow(index, updates)) for index, updates in enumerate(self.every)]
        try:
            open_streams = len(tasks)
            while open_streams:
                index, event = await events.get()
                if isinstance(event, Exception):
                    raise event
                if event is None:
                    open_streams -= 1
                else:
                    yield index, event
        finally:
            for task in tasks:
                task.cancel()
