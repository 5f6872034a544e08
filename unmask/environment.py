"""The deterministic CPU environment: set before torch loads, or said to be missing.

MKL otherwise picks its kernels by machine, thread count and alignment, and a sum taken in another order is another sum.
"""

import os
import sys

_MODE = "AVX2,STRICT"


def prepare() -> None:
    """Ask MKL for one order of summation. Has no effect once torch has done its first product."""
    if "torch" not in sys.modules:
        os.environ.setdefault("MKL_CBWR", _MODE)


def deterministic() -> bool:
    """Whether this process asked MKL in time."""
    return os.environ.get("MKL_CBWR", "").startswith(("AVX2", "COMPATIBLE", "SSE"))
