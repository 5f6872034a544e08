"""What a server accepts, as one value."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from unmask.errors import UnmaskError


# The comments beside the fields are also the help of the command line's options.
@dataclass(frozen=True)
class RequestLimits:
    """What an engine accepts, and how much it does at the same time."""

    waiting: int = 256  # requests that may wait; others are refused with 429
    running: int = 64  # requests that are decoded at the same time
    batch_rows: int = 64  # rows per forward
    max_length: int = 1024  # masks that a request may ask for
    max_rows: int = 65536  # rows of the network that a request may cost
    max_choices: int = 16  # answers per request
    max_seconds: float = 600.0  # seconds that a request may take, waiting included
    max_body: int = 4_000_000  # bytes of a request

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 <= value < math.inf or (value == 0 and field.name != "waiting"):
                raise UnmaskError(f"{field.name}={value} does not work: choose more than 0")
