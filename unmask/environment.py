"""The CPU environment, set before torch loads: one order of summation, and threads that wait politely.

MKL otherwise picks its kernels by machine, thread count and alignment, and a sum taken in another order is another sum.
OpenMP's threads otherwise spin while they wait: on a machine with other work that made a step fifty times slower.
"""

import os
import sys

_SETTINGS = {"MKL_CBWR": "AVX2,STRICT", "OMP_WAIT_POLICY": "PASSIVE"}


def prepare() -> None:
    """Has no effect once torch is loaded; what the user has set is left alone."""
    if "torch" not in sys.modules:
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)


def deterministic() -> bool:
    """Whether this process asked MKL in time."""
    return os.environ.get("MKL_CBWR", "").startswith(("AVX2", "COMPATIBLE", "SSE"))
