"""Signs spelt in ASCII where a stream cannot encode them."""

from __future__ import annotations

import codecs
import sys

ERRORS = "unmask-spell"  # the name by which streams and codecs know it
SPELT = {
    **dict(zip("✓✗→±…≥≤τ", ("ok", "no", "to", "+-", "..", ">=", "<=", "tau"), strict=True)),
    **dict(zip("−–·×÷²“”", '--.x/2""', strict=True)),
    **dict(zip("░∎↵★█●○├└│─", "_$|*#*o++|-", strict=True)),  # of rows and trees, one sign each
}


def spell(text: str) -> str:
    """As standard output will show it, so that a layout counts the right columns."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, ERRORS).decode(encoding)


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(SPELT.get(char, "?") for char in error.object[error.start : error.end]), error.end


codecs.register_error(ERRORS, _spell)
