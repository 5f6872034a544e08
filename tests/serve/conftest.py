"""Engines and servers for the tests of this folder."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import jaxtyping._storage
import pytest
import uvicorn
from greenlet import getcurrent

import unmask
from unmask.serve.app import make_app
from unmask.serve.engine import AsyncEngine
from unmask.serve.limits import Limits
from unmask.serve.metrics import Metrics


class ByCoroutine:
    """What jaxtyping remembers of the calls it is in: those of this coroutine, not of the whole thread."""

    @property
    def memo_stack(self) -> list:
        return getcurrent().__dict__.setdefault("memo_stack", [])


jaxtyping._storage._shape_storage = ByCoroutine()  # type: ignore[assignment]


@pytest.fixture(scope="session")
def model() -> unmask.Model:
    """The real network, as small as can be."""
    return unmask.load("toy-transformer")


class Served:
    """A server on a free port, in a thread of this process."""

    def __init__(self, model: unmask.Model, limits: Limits | None = None, keys: tuple[str, ...] = (), **decoding):
        self.metrics = Metrics()
        name = "toy"
        self.engine = AsyncEngine(model, limits, decoding=decoding, watcher=self.metrics.of(name))
        app = make_app({name: self.engine}, self.metrics, keys)
        self.server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="on"))
        self.thread = threading.Thread(target=lambda: asyncio.run(self.server.serve()), daemon=True)

    def __enter__(self) -> Served:
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    def __exit__(self, *error: object) -> None:
        self.server.should_exit = True
        self.thread.join(20)
        assert not self.thread.is_alive()


@pytest.fixture(scope="module")
def served(model) -> Iterator[Served]:
    with Served(model) as server:
        yield server
