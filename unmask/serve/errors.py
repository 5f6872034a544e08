"""What an engine refuses although the request is well formed, with the HTTP status that says so."""

from __future__ import annotations

import logging
from typing import Any

from unmask.errors import UnmaskError

log = logging.getLogger("unmask.serve")


class RefusedError(UnmaskError):
    status = 400
    kind = "invalid_request_error"  # OpenAI's `type`
    code: str | None = None
    param: str | None = None  # the setting that is to blame


class BusyError(RefusedError):
    """Too many requests are waiting."""

    status, kind, code = 429, "rate_limit_error", "queue_full"

    def __init__(self, sentence: str, retry_after: int):
        super().__init__(sentence)
        self.retry_after = retry_after  # seconds


class TimedOutError(RefusedError):
    status, kind, code = 408, "timeout_error", "timeout"


class ClosingError(RefusedError):
    """The server is shutting down, or lost the machine that worked on the request."""

    status, kind, code = 503, "server_error", "shutting_down"


class TooLargeError(RefusedError):
    """Does not fit the memory, even alone."""

    status, kind, code = 503, "server_error", "out_of_memory"


class LostError(RefusedError):
    """The worker that decoded the request died."""

    status, kind, code = 503, "server_error", "worker_lost"


class UnknownModelError(RefusedError):
    status, code = 404, "model_not_found"


class ClientGoneError(RefusedError):
    status, code = 499, "client_gone"


class BadBodyError(RefusedError):
    def __init__(self, sentence: str, param: str | None):
        super().__init__(sentence)
        self.param = param


def error_body(message: str, kind: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """OpenAI's shape."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def status_and_body(error: Exception) -> tuple[int, dict[str, Any]]:
    """How an error is told to a client. What is the server's own fault is told to its log."""
    if isinstance(error, RefusedError):
        return error.status, error_body(str(error), error.kind, error.code, error.param)
    if isinstance(error, UnmaskError):
        return 400, error_body(str(error), "invalid_request_error")
    log.error("a request failed", exc_info=error)
    return 500, error_body("the server failed to answer: see its log", "server_error", "internal_error")
