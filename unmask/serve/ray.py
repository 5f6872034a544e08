"""Replicas on one or many machines, run by Ray. This process keeps the queue and answers HTTP.

Each actor holds the model and an engine of its own. A request whose actor dies before any of its text was sent is
decoded again by a different one, with the same answer; after that it is refused. Ray restarts actors that died.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.runs.ray_engine import count_workers
from unmask.runs.settings import Placement
from unmask.serve.engine import AsyncEngine, MakeReplica
from unmask.serve.limits import RefusedError, RequestLimits
from unmask.serve.request import PendingRequest, Request, Update
from unmask.serve.scheduler import Replica, RequestQueue

try:
    import ray
    from ray.exceptions import RayActorError, RayError, RayTaskError
except ImportError:
    raise UnmaskError("--engine ray needs Ray: pip install 'unmask[ray,serve]'") from None

log = logging.getLogger("unmask.serve")
MAX_LOST = 3  # actors that a request may lose before it is refused
PAUSE = 0.5  # seconds before a lost actor is asked again
PROPERTIES = ("mask_id", "context", "dtype", "vocab", "block_size")  # of a denoiser


class ReplicaActor:
    """An engine in a process of its own."""

    def __init__(self, name: str, placement: Placement, limits: RequestLimits):
        self.model = placement.load(name)
        self.engine = AsyncEngine(self.model, replace(limits, waiting=limits.running))

    async def describe(self) -> Model:
        """Return the model without its weights: requests can be checked against it, but not decoded."""
        own = {name: getattr(self.model.denoiser, name) for name in PROPERTIES}
        properties: Any = SimpleNamespace(**own, refresh=None, device=torch.device("cpu"))
        return replace(self.model, denoiser=properties)

    async def decode(self, request: Request) -> AsyncIterator[Update]:
        updates = self.engine.submit(request)
        try:
            async for update in updates:
                yield update
        finally:
            updates.cancel()


class RayReplica(Replica):
    """Threads that hand requests of the queue to an actor, one for each request that it may decode at the same time."""

    def __init__(self, actor: Any, limits: RequestLimits, queue: RequestQueue):
        super().__init__(queue, "ray", threads=limits.running)
        self.actor = actor
        self.decoding: set[int] = set()  # numbers of the requests that the actor has
        self._up = threading.Event()  # clear while the actor is dead
        self._up.set()

    @property
    def running(self) -> int:
        return len(self.decoding)

    def stop(self) -> None:
        super().stop()
        with contextlib.suppress(RayError):
            ray.kill(self.actor)

    def _loop(self) -> None:
        while not self.stopped:
            self.queue.wait()
            self._up.wait()
            if pending := self.queue.take():
                self.decoding.add(id(pending))
                survived = self._decode(pending)
                self.decoding.discard(id(pending))
                if not survived:
                    self._up.clear()
                    self._retry(pending)
                    self._wait_for_actor()
            elif self.queue.closed:
                return

    def _decode(self, pending: PendingRequest) -> bool:
        """Decode a request to its end; return whether the actor survived it."""
        updates = self.actor.decode.options(num_returns="streaming").remote(pending.request)
        pending.on_cancel = lambda: ray.cancel(updates)
        try:
            for reference in updates:
                pending.post(ray.get(reference))
        except RayActorError:
            return False
        except RayTaskError as error:
            pending.post(error.cause if isinstance(error.cause, UnmaskError) else error)
        except Exception as error:
            pending.post(error)
        return True

    def _retry(self, pending: PendingRequest) -> None:
        """Put a request that lost its actor back in the queue, unless a part of its answer was sent."""
        pending.lost_workers += 1
        if pending.streamed or pending.lost_workers >= MAX_LOST or self.stopped:
            pending.post(RefusedError("the worker that decoded this request died: try again", "worker_lost"))
        elif not pending.cancelled:
            log.warning("a worker died; its request is decoded again")
            self.queue.put_back(pending)

    def _wait_for_actor(self) -> None:
        """Wait until Ray has restarted the actor; meanwhile other replicas take the requests that wait."""
        while not self.stopped:
            try:
                ray.get(self.actor.describe.remote())
                break
            except RayError:
                time.sleep(PAUSE)
        self._up.set()


def start_actors(
    name: str, limits: RequestLimits, placement: Placement, replicas: int | None
) -> tuple[Model, list[MakeReplica]]:
    """Start an actor per replica, by default one per GPU or core; return the model without weights and the replicas."""
    on_gpu = placement.chosen_device == "cuda"
    need: Any = {"num_gpus": 1} if on_gpu else {"num_cpus": 1}
    remote: Any = ray.remote(ReplicaActor).options(
        **need, max_restarts=-1, max_task_retries=0, max_concurrency=4 * limits.running
    )
    actors = [remote.remote(name, placement, limits) for _ in range(count_workers(replicas, on_gpu))]
    try:
        models = ray.get([actor.describe.remote() for actor in actors])
    except (RayTaskError, RayActorError) as error:
        cause = getattr(error, "cause", None)
        raise cause if isinstance(cause, UnmaskError) else UnmaskError(f"no worker started: {error}") from None
    return models[0], [partial(RayReplica, actor, limits) for actor in actors]
