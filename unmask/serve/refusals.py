"""What an engine refuses although the request is well formed, with the HTTP status that says so."""

from __future__ import annotations

from unmask.errors import UnmaskError


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
