"""A running server: which models are loaded where, the address, and a shutdown that finishes what it started."""

from __future__ import annotations

import errno
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
import uvicorn
from sse_starlette.sse import AppStatus

from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.runs.settings import Placement
from unmask.serve.app import make_app
from unmask.serve.engine import AsyncEngine
from unmask.serve.operations import Metrics, RequestLog, write_lines
from unmask.serve.request import RequestLimits
from unmask.serve.stream import Watcher, Watchers


@dataclass(frozen=True)
class Address:
    host: str = "127.0.0.1"
    port: int = 8000

    def check(self, keys: Sequence[str], unlocked: bool) -> None:
        """Only a loopback address is safe without a key."""
        if keys or unlocked or _loopback(self.host):
            return
        raise UnmaskError(
            f"{self.host} can be reached from other machines: set --api-key or UNMASK_API_KEY, "
            "or say --unlocked to serve anyone"
        )

    def bind(self) -> socket.socket:
        try:
            family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
            bound = socket.socket(family)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((self.host, self.port))
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
            if getattr(error, "errno", None) == errno.EADDRINUSE:
                why = "another program listens there; choose another --port"
            raise UnmaskError(f"{self.host}:{self.port} cannot be used: {why}") from None
        return bound


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Server(uvicorn.Server):
    """On a signal, requests that are being decoded are finished; those that wait, and new ones, are refused."""

    def __init__(self, config: uvicorn.Config, engines: Sequence[AsyncEngine], announce: Callable[[], None]):
        super().__init__(config)
        self.engines, self.announce = engines, announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.announce()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn does, except that a server which was told to stop ends with success."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: Any) -> None:
        for engine in self.engines:
            engine.drain()
        super().handle_exit(sig, frame)


def load_copies(name: str, placement: Placement, replicas: int | None) -> list[Model]:
    """A copy per GPU, or as many as are asked for."""
    gpus = torch.cuda.device_count() if placement.chosen_device == "cuda" else 0
    count = replicas or max(1, gpus)
    devices = [f"cuda:{index % gpus}" if gpus > 1 else placement.device for index in range(count)]
    return [replace(placement, device=device).load(name) for device in devices]


def make_local(
    name: str,
    watcher: Watcher,
    *,
    limits: RequestLimits,
    decoding: Mapping[str, Any],
    placement: Placement,
    replicas: int | None = None,
) -> AsyncEngine:
    copies = load_copies(name, placement, replicas)
    return AsyncEngine(copies, limits, decoding=decoding, watcher=watcher)


def make_engines(
    names: Sequence[str],
    make: Callable[[str, Watcher], AsyncEngine],
    metrics: Metrics,
    log_prompts: bool = False,
) -> dict[str, AsyncEngine]:
    return {name: make(name, Watchers(metrics.of(name), RequestLog(name, log_prompts))) for name in names}


def run(
    engines: Mapping[str, AsyncEngine],
    metrics: Metrics,
    address: Address,
    keys: Sequence[str] = (),
    started: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until a signal comes. `started` is told the address once requests are taken."""
    write_lines()
    AppStatus.disable_automatic_graceful_drain()  # streams end with their answers
    app = make_app(engines, metrics, keys)
    bound = address.bind()
    host, port = bound.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    longest = max(engine.limits.max_seconds for engine in engines.values())
    config = uvicorn.Config(
        app, log_config=None, access_log=False, timeout_graceful_shutdown=int(longest) + 1, lifespan="on"
    )
    Server(config, list(engines.values()), partial(started, url)).run(sockets=[bound])


__all__ = ["Address", "Metrics", "Server", "make_engines", "make_local", "run"]
