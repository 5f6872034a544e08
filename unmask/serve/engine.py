"""The engine behind the server, for Python: many requests are decoded together, and each is awaited by itself."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, Unpack, runtime_checkable

import torch

from unmask.core import Canvas
from unmask.errors import UnmaskError, nearest
from unmask.models import Model
from unmask.runs.generation import Output
from unmask.runs.settings import DECODER, DecodingOptions, Placement
from unmask.runs.text import OnePrompt
from unmask.serve.errors import ClosingError, RefusedError, TimedOutError
from unmask.serve.queue import Event, Ticket, TicketQueue
from unmask.serve.request import Completed, Request, RequestLimits, Show, Update, read_request
from unmask.serve.scheduler import Replica
from unmask.serve.stream import Watcher
from unmask.serve.structured import check_grammar


@runtime_checkable
class Decodes(Protocol):
    """Takes tickets of a queue and decodes them, here or elsewhere."""

    @property
    def alive(self) -> bool: ...

    @property
    def running(self) -> int: ...

    @property
    def broken(self) -> bool: ...

    def start(self) -> None: ...

    def join(self, timeout: float | None = None) -> None: ...

    def stop(self) -> None: ...


MakeReplica = Callable[[TicketQueue], Decodes]


class Updates:
    """The updates of one request, as they come; the last has the answer."""

    def __init__(self, queue: TicketQueue, watcher: Watcher, request: Request, seconds: float):
        loop = asyncio.get_running_loop()
        self._events = asyncio.Queue[Event]()
        self._ticket = Ticket(request, _thread_safe(loop, self._events.put_nowait))
        self._queue, self._watcher = queue, watcher
        self._seconds, self._deadline = seconds, loop.time() + seconds
        self._ended = False
        try:
            queue.put(self._ticket)
        except RefusedError as error:
            watcher.ended(self._ticket, error.code or "error", None)
            raise

    def __aiter__(self) -> Updates:
        return self

    async def __anext__(self) -> Update:
        if self._ended:
            raise StopAsyncIteration
        try:
            event = await self._next()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if self._ended:  # cancelled by another task
            raise StopAsyncIteration
        if isinstance(event, Exception):
            self._end(getattr(event, "code", None) or "error")
            raise event
        if event.answer is not None:
            self._end("done", event.answer)
        return event

    async def answer(self) -> Completed:
        async for update in self:
            if update.answer is not None:
                return update.answer
        raise ClosingError("the request was given up")

    def cancel(self) -> None:
        """Give the request up, unless it has ended."""
        if not self._ended:
            self._end("cancelled")
            self._events.put_nowait(ClosingError("the request was given up"))  # wakes whoever waits for an update

    async def _next(self) -> Event:
        try:
            async with asyncio.timeout_at(self._deadline):
                return await self._events.get()
        except TimeoutError:
            return TimedOutError(f"the request took more than {self._seconds:g} s: shorten it or search less")

    def _end(self, outcome: str, answer: Completed | None = None) -> None:
        self._ended = True
        self._ticket.cancel()
        self._queue.ended(self._ticket)
        self._watcher.ended(self._ticket, outcome, answer)


class AsyncEngine:
    """Decodes many requests together. Every answer is what `unmask.generate` gives for the same arguments.

    `model` is a model, its name, or a list of models that are copies on several devices. A request begins within
    a few steps of those that are being decoded, waits where `limits` say so, and is given up when its task is
    cancelled.
    """

    def __init__(
        self,
        model: Model | str | Sequence[Model],
        limits: RequestLimits | None = None,
        *,
        decoding: Mapping[str, Any] | None = None,
        watcher: Watcher | None = None,
        replicas: Sequence[MakeReplica] = (),
    ):
        models = [Placement().load(model)] if isinstance(model, str) else model
        models = [models] if isinstance(models, Model) else list(models)
        if not models:
            raise UnmaskError("an engine needs a model: give at least one")
        self.model, self.limits = models[0], limits or RequestLimits()
        self.vocab = vocabulary(self.model)
        self.decoding = dict(decoding or {})  # of requests that do not say otherwise
        self.default_decoder = self.decoding.get("decoder", DECODER)
        self.default_length = self.decoding.get("length") or self.model.default_length
        self.watcher = watcher or Watcher()
        here = [partial(Replica, copy, self.limits, self.watcher.answered) for copy in models]
        self.queue = TicketQueue(self.limits.waiting, self.limits.running * len(replicas or here))
        self.replicas = [make(self.queue) for make in replicas or here]
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
        """Updates as they come: committed text, and by `show` drafts or a trace. The last has the answer."""
        updates = self.submit(self.request(prompt, show=show, **decoding), timeout)
        try:
            async for update in updates:
                yield update
        finally:
            updates.cancel()

    def request(self, prompt: OnePrompt, *, template: str | None = None, **options: Any) -> Request:
        """A checked request; `template`, `grammar`, `show` and `client` may stand beside the decoding's options."""
        more = {name: options.pop(name) for name in ("grammar", "show", "client", "suffix") if name in options}
        for name in {*self.decoding, *options} - DecodingOptions.__annotations__.keys():
            raise UnmaskError(f"unknown argument {name!r}: {nearest(name, DecodingOptions.__annotations__)}")
        given = {name: value for name, value in options.items() if value is not None}
        defaults = {name: value for name, value in self.decoding.items() if template is None or name != "length"}
        chosen = {**defaults, **given}
        request = read_request(self.model, prompt, chosen, self.limits, self.vocab, template=template, **more)
        check_grammar(self.model, request)
        return request

    def submit(self, request: Request, timeout: float | None = None) -> Updates:
        """Put a request in the queue, or refuse it. Whoever stops reading its updates cancels them."""
        return Updates(self.queue, self.watcher, request, min(timeout or math.inf, self.limits.max_seconds))

    @property
    def ready(self) -> bool:
        return not self.queue.closed and all(replica.alive for replica in self.replicas)

    @property
    def broken(self) -> bool:
        """Whether a device has failed for good."""
        return any(replica.broken for replica in self.replicas)

    @property
    def waiting(self) -> int:
        return len(self.queue)

    @property
    def running(self) -> int:
        return sum(replica.running for replica in self.replicas)

    def drain(self) -> None:
        """Refuse new requests and those that wait; what is being decoded goes on."""
        self.queue.close()

    async def close(self, seconds: float | None = None) -> None:
        """Drain, and wait until everything is answered, or for some seconds."""
        self.drain()
        for replica in self.replicas:
            await asyncio.to_thread(replica.join, seconds)
            replica.stop()


def vocabulary(model: Model) -> int:
    """How many ids the model knows: the size of its beliefs."""
    denoiser = model.denoiser
    if (known := getattr(denoiser, "vocab", None)) is not None:
        return known
    canvas = Canvas.blank([[0]], 1, denoiser.mask_id, device=denoiser.device, dtype=denoiser.dtype)
    with torch.inference_mode():
        return denoiser(canvas, canvas.slots).vocab


def _thread_safe(loop: asyncio.AbstractEventLoop, put: Callable[[Event], None]) -> Callable[[Event], None]:
    def post(event: Event) -> None:
        with contextlib.suppress(RuntimeError):  # the loop may be closed by now: then nobody waits for it
            loop.call_soon_threadsafe(put, event)

    return post
