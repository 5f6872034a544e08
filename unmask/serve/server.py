"""A running server: its models, address, metrics and logs, and a shutdown that finishes the requests it has begun."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import json
import logging
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import uvicorn
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from sse_starlette.sse import AppStatus

from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.models.devices import proc_bytes
from unmask.runs.settings import Placement, spec
from unmask.serve.app import make_app
from unmask.serve.engine import AsyncEngine
from unmask.serve.limits import RequestLimits
from unmask.serve.request import Completed, PendingRequest

SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
log = logging.getLogger("unmask.serve")


class Metrics:
    """The metrics of all models of a server, for Prometheus."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        by_model: dict[str, Any] = {"registry": self.registry, "labelnames": ("model",)}
        histogram = partial(Histogram, **by_model)
        self.requests = Counter("unmask_requests", "Requests by outcome", ("model", "outcome"), registry=self.registry)
        self.tokens = Counter("unmask_tokens", "Tokens of answers", **by_model)
        self.computed = Counter("unmask_computed_forward_passes", "Forward passes computed", **by_model)
        self.sizes = histogram("unmask_batch_size", "Sequences per call of the network", buckets=SIZES)
        self.shared = histogram("unmask_batch_requests", "Requests per call of the network", buckets=SIZES)
        self.queued = histogram("unmask_queue_seconds", "From arrival to the first step", buckets=SECONDS)
        self.seconds = histogram("unmask_request_seconds", "From arrival to the end", buckets=SECONDS)
        self.waiting = Gauge("unmask_waiting_requests", "Requests in the queue", **by_model)
        self.running = Gauge("unmask_running_requests", "Requests being decoded", **by_model)
        memory = Gauge("unmask_memory_bytes", "Memory in use", ("device",), registry=self.registry)
        memory.labels("cpu").set_function(lambda: proc_bytes("self/status", "VmRSS") or 0)
        for index in range(torch.cuda.device_count()):
            memory.labels(f"cuda:{index}").set_function(lambda index=index: torch.cuda.memory_allocated(index))

    def follow(self, name: str, engine: AsyncEngine) -> None:
        """Measure an engine under the name of its model."""
        computed, tokens = self.computed.labels(name), self.tokens.labels(name)
        sizes, shared = self.sizes.labels(name), self.shared.labels(name)
        queued, seconds = self.queued.labels(name), self.seconds.labels(name)

        def on_forward(rows: int, requests: int) -> None:
            computed.inc(rows)
            sizes.observe(rows)
            shared.observe(requests)

        def on_end(pending: PendingRequest, outcome: str, answer: Completed | None) -> None:
            self.requests.labels(name, outcome).inc()
            seconds.observe(time.monotonic() - pending.arrived)
            if pending.started is not None:
                queued.observe(pending.started - pending.arrived)
            if answer is not None:
                tokens.inc(len(answer.ids))

        engine.on_forward.append(on_forward)
        engine.on_end.append(on_end)
        self.waiting.labels(name).set_function(lambda: engine.waiting)
        self.running.labels(name).set_function(lambda: engine.running)

    def text(self) -> bytes:
        return generate_latest(self.registry)


class JsonLines(logging.Formatter):
    """Formats a log record as a JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True)


def log_as_json() -> None:
    """Write the logs of the server and of uvicorn to standard error as JSON lines."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name in ("unmask", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler] if "." not in name else [], "." in name
        logger.setLevel(logging.INFO)


def log_request(model: str, log_prompts: bool, pending: PendingRequest, outcome: str, answer: Completed | None) -> None:
    """Log the end of a request; prompt and answer only if `log_prompts` is set."""
    request, now = pending.request, time.monotonic()
    facts: dict[str, Any] = {
        "model": model,
        "outcome": outcome,
        "decoder": spec(request.decoding.decoder),
        "length": request.decoding.length,
        "seed": request.decoding.seed,
        "client": request.client,
        "queued": round((pending.started or now) - pending.arrived, 4),
        "seconds": round(now - pending.arrived, 4),
    }
    if answer is not None:
        passes = answer.output.cost.forward_passes
        facts |= {"tokens": len(answer.ids), "forward_passes": passes, "finish": answer.finish}
    if log_prompts:
        facts |= {"prompt": request.prompt.text, "answer": answer and answer.text}
    log.info("request", extra={"facts": facts})


def check_host(host: str) -> None:
    """Refuse an address that other machines can reach."""
    with contextlib.suppress(ValueError):  # a name
        if host == "localhost" or ipaddress.ip_address(host).is_loopback:
            return
    raise UnmaskError(
        f"{host} can be reached from other machines: set --api-key or UNMASK_API_KEY, "
        "or allow access without a key by --unlocked"
    )


def bind(host: str, port: int) -> socket.socket:
    try:
        bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            why = "the port is in use; choose a different --port"
        raise UnmaskError(f"cannot listen on {host}:{port}: {why}") from None
    return bound


class Server(uvicorn.Server):
    """On a signal, requests that are being decoded are finished; those that wait, and new ones, are refused."""

    def __init__(self, config: uvicorn.Config, engines: Sequence[AsyncEngine], announce: Callable[[], None]):
        super().__init__(config)
        self.engines, self.announce = engines, announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.announce()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop as uvicorn does, but do not keep the signal, which would be raised again at the end: exit with 0."""
        for engine in self.engines:
            engine.drain()
        self.force_exit |= self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def load_copies(name: str, placement: Placement, replicas: int | None) -> list[Model]:
    """Load a model `replicas` times; by default once per GPU."""
    gpus = torch.cuda.device_count() if placement.chosen_device == "cuda" else 0
    count = replicas or max(1, gpus)
    devices = [f"cuda:{index % gpus}" if gpus > 1 else placement.device for index in range(count)]
    return [replace(placement, device=device).load(name) for device in devices]


def make_engines(
    names: Sequence[str],
    metrics: Metrics,
    *,
    limits: RequestLimits,
    decoding: Mapping[str, Any],
    placement: Placement,
    replicas: int | None = None,
    on_ray: bool = False,
    log_prompts: bool = False,
) -> dict[str, AsyncEngine]:
    """Make an engine per model, with its replicas in this process or as Ray actors, measured and logged."""
    engines = {}
    for name in names:
        if on_ray:
            from unmask.serve.ray import start_actors  # an optional extra

            model, remote = start_actors(name, limits, placement, replicas)
            engine = AsyncEngine(model, limits, decoding=decoding, replicas=remote)
        else:
            engine = AsyncEngine(load_copies(name, placement, replicas), limits, decoding=decoding)
        metrics.follow(name, engine)
        engine.on_end.append(partial(log_request, name, log_prompts))
        engines[name] = engine
    return engines


def run(
    engines: Mapping[str, AsyncEngine],
    metrics: Metrics,
    host: str,
    port: int,
    keys: Sequence[str] = (),
    on_start: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until a signal comes. `on_start` is called with the URL once requests are accepted."""
    log_as_json()
    AppStatus.disable_automatic_graceful_drain()  # streams end with their answers
    app = make_app(engines, metrics.text, keys)
    bound = bind(host, port)
    host, port = bound.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    longest = max(engine.limits.max_seconds for engine in engines.values())
    config = uvicorn.Config(
        app, log_config=None, access_log=False, timeout_graceful_shutdown=int(longest) + 1, lifespan="on"
    )
    Server(config, list(engines.values()), partial(on_start, url)).run(sockets=[bound])
