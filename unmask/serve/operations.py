"""What a server does, as Prometheus reads it. Logs: one JSON object per line on standard error. Prompts and answers are left out unless they are asked for."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from typing import Any

import torch
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from unmask.models.devices import proc_bytes
from unmask.runs.settings import spec
from unmask.serve.queue import Ticket
from unmask.serve.request import Completed
from unmask.serve.stream import Watcher

SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """One for all models of a server; `of` gives the watcher of one model's engine."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        kept = {"registry": self.registry, "labelnames": ("model",)}
        self.requests = Counter("unmask_requests", "Requests by outcome", ("model", "outcome"), registry=self.registry)
        self.tokens = Counter("unmask_tokens", "Tokens of answers", **kept)
        self.rows = Counter("unmask_rows", "Rows computed", **kept)
        self.batch = Histogram("unmask_batch_rows", "Rows per forward", buckets=ROWS, **kept)
        self.shared = Histogram("unmask_batch_requests", "Requests per forward", buckets=ROWS, **kept)
        self.queued = Histogram("unmask_queue_seconds", "From arrival to the first step", buckets=SECONDS, **kept)
        self.seconds = Histogram("unmask_request_seconds", "From arrival to the end", buckets=SECONDS, **kept)
        self.waiting = Gauge("unmask_waiting_requests", "Requests in the queue", **kept)
        self.running = Gauge("unmask_running_requests", "Requests being decoded", **kept)
        memory = Gauge("unmask_memory_bytes", "Memory in use", ("device",), registry=self.registry)
        memory.labels("cpu").set_function(lambda: proc_bytes("self/status", "VmRSS") or 0)
        for index in range(torch.cuda.device_count()):
            memory.labels(f"cuda:{index}").set_function(lambda index=index: torch.cuda.memory_allocated(index))

    def of(self, model: str) -> ModelMetrics:
        return ModelMetrics(self, model)

    def follow(self, model: str, waiting: Callable[[], int], running: Callable[[], int]) -> None:
        self.waiting.labels(model).set_function(waiting)
        self.running.labels(model).set_function(running)

    def text(self) -> bytes:
        return generate_latest(self.registry)


class ModelMetrics(Watcher):
    """The watcher of an engine."""

    def __init__(self, metrics: Metrics, model: str):
        self._requests, self._model = metrics.requests, model
        self._rows, self._batch = metrics.rows.labels(model), metrics.batch.labels(model)
        self._tokens, self._shared = metrics.tokens.labels(model), metrics.shared.labels(model)
        self._queued, self._seconds = metrics.queued.labels(model), metrics.seconds.labels(model)

    def answered(self, rows: int, requests: int) -> None:
        self._rows.inc(rows)
        self._batch.observe(rows)
        self._shared.observe(requests)

    def ended(self, ticket: Ticket, outcome: str, answer: Completed | None) -> None:
        self._requests.labels(self._model, outcome).inc()
        self._seconds.observe(time.monotonic() - ticket.arrived)
        if ticket.started is not None:
            self._queued.observe(ticket.started - ticket.arrived)
        if answer is not None:
            self._tokens.inc(len(answer.ids))


log = logging.getLogger("unmask.serve")


class Lines(logging.Formatter):
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


def write_lines() -> None:
    """All that the server and uvicorn log goes to standard error, line by line."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines())
    for name in ("unmask", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler] if "." not in name else [], "." in name
        logger.setLevel(logging.INFO)


class RequestLog(Watcher):
    """The watcher that writes a line for every request."""

    def __init__(self, model: str, prompts: bool = False):
        self.model, self.prompts = model, prompts

    def ended(self, ticket: Ticket, outcome: str, answer: Completed | None) -> None:
        request, now = ticket.request, time.monotonic()
        facts: dict[str, Any] = {
            "model": self.model,
            "outcome": outcome,
            "decoder": spec(request.decoding.decoder),
            "length": request.decoding.length,
            "seed": request.decoding.seed,
            "client": request.client,
            "queued": round((ticket.started or now) - ticket.arrived, 4),
            "seconds": round(now - ticket.arrived, 4),
        }
        if answer is not None:
            facts |= {
                "tokens": len(answer.ids),
                "forward_passes": answer.output.cost.forward_passes,
                "finish": answer.finish,
            }
        if self.prompts:
            facts |= {"prompt": request.prompt.text, "answer": answer and answer.text}
        log.info("request", extra={"facts": facts})
