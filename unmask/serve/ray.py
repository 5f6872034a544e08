"""Replicas on one or many machines, run by Ray. This process keeps the queue and answers HTTP.

Each actor holds the model and an engine of its own. A request that loses its actor before any of its text was sent
begins again elsewhere, with the same answer; after that it is refused. Ray starts a new actor for one that died.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from unmask.core import Beliefs, CacheView, Canvas
from unmask.core.shapes import Columns
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.runs.ray_engine import count_workers
from unmask.runs.settings import Placement
from unmask.serve.engine import AsyncEngine, Updates, vocabulary
from unmask.serve.errors import LostError
from unmask.serve.queue import Ticket, TicketQueue
from unmask.serve.request import Request, RequestLimits, Update
from unmask.serve.stream import Watcher

try:
    import ray
    from ray.exceptions import RayActorError, RayError, RayTaskError
except ImportError:
    raise UnmaskError("--engine ray needs Ray: pip install 'unmask[ray,serve]'") from None

log = logging.getLogger("unmask.serve")
TRIES = 3  # actors that a request may lose before it is refused
PAUSE = 0.5  # seconds before a lost actor is asked again


class ReplicaActor:
    """An engine in a process of its own."""

    def __init__(self, name: str, placement: Placement, limits: RequestLimits):
        self.model = placement.load(name)
        self.engine = AsyncEngine(self.model, replace(limits, waiting=limits.running))
        self.live: dict[int, Updates] = {}

    async def describe(self) -> tuple[dict[str, Any], Model]:
        """The numbers of its denoiser, and the model without it."""
        denoiser = self.model.denoiser
        names = ("mask_id", "context", "dtype")
        facts = {name: getattr(denoiser, name) for name in names} | {"vocab": vocabulary(self.model)}
        return facts, replace(self.model, denoiser=None)  # type: ignore[arg-type]

    async def decode(self, number: int, request: Request) -> AsyncIterator[Update]:
        self.live[number] = updates = self.engine.submit(request)
        try:
            async for update in updates:
                yield update
        finally:
            updates.cancel()
            del self.live[number]

    async def cancel(self, number: int) -> None:
        if updates := self.live.get(number):
            updates.cancel()


class Elsewhere:
    """What is known here of a denoiser that is on another machine."""

    refresh = None
    device = torch.device("cpu")

    def __init__(self, mask_id: int, context: int, dtype: torch.dtype, vocab: int):
        self.mask_id, self.context, self.dtype, self.vocab = mask_id, context, dtype, vocab

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        raise UnmaskError("this model is held by Ray's workers: it cannot be asked here")


class RayReplica:
    """Hands tickets of the queue to an actor, as many at a time as it may decode."""

    def __init__(self, actor: Any, limits: RequestLimits, queue: TicketQueue):
        self.actor, self.queue = actor, queue
        self.stopped = False
        self._up = threading.Event()  # clear while the actor is dead
        self._up.set()
        self.busy: set[int] = set()  # numbers of the requests that the actor has
        self._slots = [threading.Thread(target=self._work, daemon=True) for _ in range(limits.running)]

    broken = False  # Ray starts an actor again that failed

    def start(self) -> None:
        self.queue.join()
        for slot in self._slots:
            slot.start()

    def stop(self) -> None:
        self.stopped = True
        with contextlib.suppress(RayError):
            ray.kill(self.actor)

    @property
    def alive(self) -> bool:
        return any(slot.is_alive() for slot in self._slots)

    @property
    def running(self) -> int:
        return len(self.busy)

    def join(self, timeout: float | None = None) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        for slot in self._slots:
            slot.join(None if end is None else max(0.0, end - time.monotonic()))

    def _work(self) -> None:
        while not self.stopped:
            self.queue.wait()
            self._up.wait()
            if ticket := self.queue.take():
                self.busy.add(id(ticket))
                lost = self._loses(ticket)
                self.busy.discard(id(ticket))
                if lost:
                    self._up.clear()
                    self._pass_on(ticket)
                    self._wait_for_actor()
            elif self.queue.closed:
                return

    def _loses(self, ticket: Ticket) -> bool:
        """Decode a ticket to its end, or until the actor dies."""
        number = id(ticket)
        ticket.when_cancelled(lambda: self.actor.cancel.remote(number))
        try:
            for reference in self.actor.decode.options(num_returns="streaming").remote(number, ticket.request):
                ticket.post(ray.get(reference))
        except RayActorError:
            return True
        except RayTaskError as error:
            ticket.post(error.cause if isinstance(error.cause, UnmaskError) else error)
        except Exception as error:
            ticket.post(error)
        return False

    def _pass_on(self, ticket: Ticket) -> None:
        """Let another actor begin it again, unless its reader would notice or it has cost enough of them."""
        ticket.losses += 1
        if ticket.told or ticket.losses >= TRIES or self.stopped:
            ticket.post(LostError("the worker that decoded this request died: try again"))
        elif not ticket.cancelled:
            log.warning("a worker died; its request begins again")
            self.queue.put_back(ticket)

    def _wait_for_actor(self) -> None:
        """Ray starts it again; meanwhile others take what waits."""
        while not self.stopped:
            try:
                ray.get(self.actor.describe.remote())
                break
            except RayError:
                time.sleep(PAUSE)
        self._up.set()


def make_engine(
    name: str,
    watcher: Watcher,
    *,
    limits: RequestLimits,
    decoding: Mapping[str, Any],
    placement: Placement,
    replicas: int | None = None,
) -> AsyncEngine:
    """An engine whose replicas are actors; one per GPU or core unless a number is given."""
    on_gpu = placement.chosen_device == "cuda"
    count = count_workers(replicas, on_gpu)
    need: Any = {"num_gpus": 1} if on_gpu else {"num_cpus": 1}
    remote: Any = ray.remote(ReplicaActor).options(
        **need, max_restarts=-1, max_task_retries=0, max_concurrency=4 * limits.running
    )
    actors = [remote.remote(name, placement, limits) for _ in range(count)]
    try:
        described = ray.get([actor.describe.remote() for actor in actors])
    except RayTaskError as error:
        raise error.cause if isinstance(error.cause, UnmaskError) else error from None
    except RayActorError as error:
        cause = getattr(error, "cause", None)
        raise cause if isinstance(cause, UnmaskError) else UnmaskError(f"no worker started: {error}") from None
    facts, model = described[0]
    make = [partial(RayReplica, actor, limits) for actor in actors]
    return AsyncEngine(
        replace(model, denoiser=Elsewhere(**facts)), limits, decoding=decoding, watcher=watcher, replicas=make
    )
