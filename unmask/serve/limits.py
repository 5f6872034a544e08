"""What a server accepts, and how it refuses the rest: limits, error codes and the error of a request."""

from __future__ import annotations

from dataclasses import dataclass

from unmask.errors import UnmaskError, check_above, check_at_least


# The comments beside the fields are also the help of the command line's options.
@dataclass(frozen=True)
class RequestLimits:
    """The limits of an engine: the requests it accepts, and how many it decodes at the same time."""

    waiting: int = 256  # requests that may wait; others are refused with 429
    running: int = 64  # requests that are decoded at the same time
    max_batch: int = 64  # sequences per forward pass of the network
    max_length: int = 1024  # masks that a request may ask for
    max_forward_passes: int = 65536  # forward passes that a request may cost
    max_choices: int = 16  # answers per request
    max_seconds: float = 600.0  # seconds that a request may take, waiting included
    max_body: int = 4_000_000  # bytes of a request

    def __post_init__(self) -> None:
        check_at_least(0, waiting=self.waiting)
        check_above(0, **{name: value for name, value in vars(self).items() if name != "waiting"})
        if self.max_seconds == float("inf"):
            raise UnmaskError("max_seconds must be finite, got inf")


# HTTP status and OpenAI's `type` of an error by its code; without a code the request itself is not valid.
CODES = {
    None: (400, "invalid_request_error"),
    "invalid_api_key": (401, "authentication_error"),
    "model_not_found": (404, "invalid_request_error"),
    "slow_request": (408, "timeout_error"),  # it did not arrive in time
    "timeout": (408, "timeout_error"),  # it was not answered in time
    "request_too_large": (413, "invalid_request_error"),
    "queue_full": (429, "rate_limit_error"),
    "client_gone": (499, "invalid_request_error"),
    "shutting_down": (503, "server_error"),  # or the request was cancelled
    "out_of_memory": (503, "server_error"),  # even in a batch of its own
    "worker_lost": (503, "server_error"),  # it died while it decoded the request
}


class RefusedError(UnmaskError):
    """A request that the server refuses or ends, with its HTTP status and OpenAI's error fields.

    `param` is the setting that caused it, `retry_after` the seconds after which to try again.
    """

    def __init__(
        self, message: str, code: str | None = None, *, param: str | None = None, retry_after: int | None = None
    ):
        super().__init__(message)
        self.code, self.param, self.retry_after = code, param, retry_after
        self.status, self.kind = CODES[code]
