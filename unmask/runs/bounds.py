"""Work without a bound is refused before it starts, with the cost it would have."""

from __future__ import annotations

from unmask.core import Decoder
from unmask.errors import UnmaskError
from unmask.models.memory import format_bytes
from unmask.runs.decoding import spec

MOST_ROWS = 1_000_000  # per problem, unless the user allows more
POSITION_BYTES = 64  # of a row that is kept: its tokens, scores and noise, in the copies that a step makes


def check_max_rows(most: int | None) -> int:
    if most is None:
        return MOST_ROWS
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise UnmaskError(f"max_rows={most!r} does not work: choose 1 or more")
    return most


def check_rows(decoder: Decoder, masks: int, most: int, times: int = 1, positions: int = 0, advice: str = "") -> None:
    """Refuse what may ask more than `most` rows of the network; `positions` are those of prompt and answer."""
    rows = decoder.rows(masks) * times
    if rows <= most:
        return
    memory = rows // max(masks, 1) * max(masks, positions) * POSITION_BYTES
    advice = advice or f"choose less, or allow it with max_rows (--max-rows {rows})"
    raise UnmaskError(f"{spec(decoder)} needs about {rows:,} rows, {format_bytes(memory)}: {advice}")
