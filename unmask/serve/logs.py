"""Logs: one JSON object per line on standard error. Prompts and answers are left out unless they are asked for."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from unmask.runs.decoding import spec
from unmask.serve.request import Completed
from unmask.serve.ticket import Ticket
from unmask.serve.watcher import Watcher

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
            facts |= {"tokens": len(answer.ids), "rows": answer.output.cost.rows, "finish": answer.finish}
        if self.prompts:
            facts |= {"prompt": request.prompt.text, "answer": answer and answer.text}
        log.info("request", extra={"facts": facts})
