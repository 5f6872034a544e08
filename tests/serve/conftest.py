"""Engines and servers for the tests of this folder."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import httpx
import jaxtyping._storage
import pytest
import uvicorn
from greenlet import getcurrent

import unmask
from tests.runs.processes import ENVIRON, ROOT, descendants
from unmask.serve.app import make_app
from unmask.serve.engine import AsyncEngine
from unmask.serve.limits import RequestLimits
from unmask.serve.server import Metrics


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


@pytest.fixture(scope="session")
def tiny() -> unmask.Model:
    """A model that was trained, with a tokenizer of subwords."""
    return unmask.load("tiny")


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of asynchronous tests."""
    return "asyncio"


class Served:
    """A server on a free port, in a thread of this process."""

    def __init__(
        self,
        model: unmask.Model,
        limits: RequestLimits | None = None,
        keys: tuple[str, ...] = (),
        name: str = "toy",
        **decoding,
    ):
        self.metrics = Metrics()
        self.engine = AsyncEngine(model, limits, decoding=decoding)
        self.metrics.follow(name, self.engine)
        app = make_app({name: self.engine}, self.metrics.text, keys)
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


@contextmanager
def serving(*words: str) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """`unmask serve` on a free port: the process, its address, and the lines it has written."""
    command = [sys.executable, "-m", "unmask", "serve", "--port", "0", *words]
    environ = os.environ | ENVIRON | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "UNMASK_API_KEY": ""}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ)
    assert process.stderr is not None
    lines: list[str] = []
    try:
        for line in process.stderr:
            lines.append(line)
            if match := re.search(r"serving at (\S+)", line):
                break
        else:
            raise AssertionError("".join(lines))
        threading.Thread(target=lambda: lines.extend(process.stderr or ()), daemon=True).start()
        assert httpx.get(f"{match.group(1)}/healthz").status_code == 200
        yield process, match.group(1), lines
    finally:
        for pid in descendants(process.pid) if process.poll() is None else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.kill()
        process.wait()


async def shown(url: str, line: str) -> None:
    """Wait until a server's metrics have this line."""
    async with asyncio.timeout(60), httpx.AsyncClient() as http:
        while line not in (await http.get(f"{url}/metrics")).text:
            await asyncio.sleep(0.01)
