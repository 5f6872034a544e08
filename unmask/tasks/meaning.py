"""The process behind `symbolic.py`: reads a pair of LaTeX answers per line and writes whether they are equal.

It is run as a file, never imported, so that it loads math-verify and nothing else of this package.
"""

import json
import os
import resource
import sys

from math_verify import parse, verify

MEMORY = 4 << 30
SECONDS = 3  # CPU time per comparison; beyond it the kernel kills this process, which counts as unequal


def same(gold: str, answer: str) -> bool:
    """Without math-verify's timeouts, which need signals and measure wall time."""
    try:
        left, right = (parse(f"\\boxed{{{side}}}", parsing_timeout=None) for side in (gold, answer))  # pyright: ignore[reportArgumentType]
        return bool(verify(left, right, timeout_seconds=None))
    except Exception:
        return False


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    out = os.dup(1)
    os.dup2(2, 1)  # keeps what the library prints out of the answers
    for line in sys.stdin:
        spent = sum(os.times()[:2])
        resource.setrlimit(resource.RLIMIT_CPU, (int(spent) + 1 + SECONDS, resource.RLIM_INFINITY))
        os.write(out, json.dumps(same(*json.loads(line))).encode() + b"\n")


if __name__ == "__main__":
    main()
