"""The process environment: CPU settings that must be set before torch loads, and ASCII substitutes for output streams.

By default MKL chooses kernels by machine, thread count and alignment, so the order of a sum, and its rounding, can
change; and idle OpenMP threads spin, which slows other processes down. Both are set here unless the user has set them.
"""

from __future__ import annotations

import codecs
import os
import sys

_SETTINGS = {"MKL_CBWR": "AVX2,STRICT", "OMP_WAIT_POLICY": "PASSIVE"}
ASCII_ERRORS = "unmask-ascii"  # error handler for streams and codecs that cannot encode a character
SUBSTITUTES = {
    **dict(zip("✓✗→±…≥≤τ", ("ok", "no", "to", "+-", "..", ">=", "<=", "tau"), strict=True)),
    **dict(zip("−–·×÷²“”", '--.x/2""', strict=True)),
    **dict(zip("░∎↵★█●○├└│─", "_$|*#*o++|-", strict=True)),  # texts and trees: one character each
}


def prepare() -> None:
    """Set the environment variables that the user has not set. This has no effect once torch is loaded."""
    if "torch" not in sys.modules:
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)


def deterministic() -> bool:
    """Return True if MKL was asked for one fixed order of summation."""
    return os.environ.get("MKL_CBWR", "").startswith(("AVX2", "COMPATIBLE", "SSE"))


def as_printed(text: str) -> str:
    """Return the text as standard output will show it, so that a layout counts the right columns."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, ASCII_ERRORS).decode(encoding)


def _substitute(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(SUBSTITUTES.get(char, "?") for char in error.object[error.start : error.end]), error.end


codecs.register_error(ASCII_ERRORS, _substitute)
