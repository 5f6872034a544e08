"""What an engine refuses although the request is well formed, with the HTTP status that says so."""

from __future__ import annotations

from unmask.errors import UnmaskError


class Refused(UnmaskError):
    status = 400
    kind = "invalid_request_error"  # OpenAI's `type`
    code: str | None = None


class Busy(Refused):
    """Too many requests are waiting."""

    status, kind, code = 429, "rate_limit_error", "queue_full"

    def __init__(self, sentence: str, retry_after: int):
        super().__init__(sentence)
        self.retry_after = retry_after  # seconds


class TimedOut(Refused):
    status, kind, code = 408, "timeout_error", "timeout"


class Closing(Refused):
    """The server is shutting down, or lost the machine that worked on the request."""

    status, kind, code = 503, "server_error", "shutting_down"


class TooLarge(Refused):
    """Does not fit the memory, even alone."""

    status, kind, code = 503, "server_error", "out_of_memory"


class Lost(Refused):
    """The worker that decoded the request died."""

    status, kind, code = 503, "server_error", "worker_lost"
