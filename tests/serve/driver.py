"""Requests to a scheduler that is stepped by hand, without a thread or a queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace

import torch

import unmask
from unmask.core import Beliefs, CacheView, Canvas, Denoiser, Wrapper
from unmask.serve.limits import RequestLimits
from unmask.serve.request import Completed, Event, PendingRequest, Show, read_request
from unmask.serve.scheduler import RequestQueue, Scheduler


async def until(fact: Callable[[], bool]) -> None:
    """Wait for a fact that another thread brings about."""
    async with asyncio.timeout(60):
        while not fact():
            await asyncio.sleep(0.005)


class Asked:
    """A request, and all that was posted about it."""

    def __init__(self, model: unmask.Model, prompt: str, show: Show | None = "text", **decoding):
        self.prompt, self.options = prompt, decoding
        self.events: list[Event] = []
        request = read_request(model, prompt, {"show": show, **decoding}, RequestLimits())
        self.pending = PendingRequest(request, self.events.append)

    @property
    def answer(self) -> Completed:
        last = self.events[-1]
        assert not isinstance(last, Exception), last
        assert last.answer is not None
        return last.answer

    @property
    def output(self) -> unmask.Output:
        return self.answer.output

    @property
    def pieces(self) -> list[str]:
        return [event.text for event in self.events if not isinstance(event, Exception)]

    def check(self, model: unmask.Model) -> None:
        """The answer is that of `generate`."""
        expected = unmask.generate(model, self.prompt, **self.options)
        assert (self.output.text, self.output.hypotheses) == (expected.text, expected.hypotheses)
        assert self.output.settings == expected.settings
        for count in ("forward_passes", "computed", "positions"):
            assert getattr(self.output.cost, count) == getattr(expected.cost, count)
        assert "".join(self.pieces) == expected.text


def ask(model: unmask.Model, prompts: Iterable[str], **decoding) -> list[Asked]:
    """Requests that differ by their prompts and seeds, and want only an answer."""
    return [Asked(model, prompt, show=None, seed=7 * seed, **decoding) for seed, prompt in enumerate(prompts)]


def check(model: unmask.Model, every: Iterable[Asked]) -> None:
    """Every answer is that of `generate`."""
    for asked in every:
        asked.check(model)


class Driver:
    """A scheduler, and the rows and requests of every forward pass."""

    def __init__(self, model: unmask.Model, max_batch: int = 64):
        self.forwards: list[tuple[int, int]] = []
        limits = RequestLimits(max_batch=max_batch)
        self.scheduler = Scheduler(model, limits, lambda *forward: self.forwards.append(forward), RequestQueue(1, 1))

    @property
    def running(self) -> int:
        return self.scheduler.running

    @property
    def rows(self) -> list[int]:
        return [rows for rows, _ in self.forwards]

    @property
    def requests(self) -> list[int]:
        return [requests for _, requests in self.forwards]

    def start(self, *every: Asked) -> None:
        self.scheduler.add(asked.pending for asked in every)

    def step(self, count: int = 1) -> None:
        with torch.inference_mode():
            for _ in range(count):
                self.scheduler.step()

    def finish(self, *every: Asked) -> int:
        """Decode these requests and all others to their ends; return the number of steps."""
        self.start(*every)
        steps = 0
        while self.running:
            self.step()
            steps += 1
        return steps


class Failing(Wrapper):
    """A denoiser that raises an error for some canvases."""

    def __init__(self, inner: Denoiser, error: Exception, fails: Callable[[Canvas], bool]):
        super().__init__(inner)
        self.error, self.fails = error, fails

    def __call__(self, canvas: Canvas, at, cache: CacheView | None = None) -> Beliefs:
        if self.fails(canvas):
            raise self.error
        return self.inner(canvas, at, cache)


def failing(model: unmask.Model, error: Exception, fails: Callable[[Canvas], bool] = lambda canvas: True):
    """The model, with an error for the canvases where `fails` is true."""
    return replace(model, denoiser=Failing(model.denoiser, error, fails))
