"""The process environment: CPU settings that must be set before torch loads.

By default MKL chooses kernels by machine, thread count and alignment, so the order of a sum, and its rounding, can
change; and idle OpenMP threads spin, which slows other processes down. Both are set here unless the user has set them.
"""

from __future__ import annotations

import os
import sys

_SETTINGS = {"MKL_CBWR": "AVX2,STRICT", "OMP_WAIT_POLICY": "PASSIVE"}


def prepare() -> None:
    """Set the environment variables that the user has not set. This has no effect once torch is loaded."""
    if "torch" not in sys.modules:
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)


def deterministic() -> bool:
    """Return True if MKL was asked for one fixed order of summation."""
    return os.environ.get("MKL_CBWR", "").startswith(("AVX2", "COMPATIBLE", "SSE"))
