"""The process behind `symbolic.py`: reads a pair of LaTeX answers per line and writes whether they are equal.

It is run as a file, never imported, so that it loads math-verify and nothing else of this package.
"""

import json
import os
import resource
import sys

from math_verify import parse, verify

MEMORY = 4 << 30
SECONDS = 4  # processor time per comparison; beyond it the kernel kills this process, which counts as unequal


def same(gold: str, answer: str) -> bool:
    """Without math-verify's timeouts, which need signals and measure wall time."""
    try:
        left, right = (parse(f"\\boxed{{{side}}}", parsing_timeout=None) for side in (gold, answer))  # pyright: ignore[reportArgumentType]
        return bool(verify(left, right, timeout_seconds=None))
    except Exception:
        return False


def limit(kind: int, most: int) -> None:
    """Below what this process was given by whoever started it, which only root may raise."""
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def main() -> None:
    limit(resource.RLIMIT_AS, MEMORY)
    out = os.dup(1)
    os.dup2(2, 1)  # keeps what the library prints out of the answers
    given = resource.getrlimit(resource.RLIMIT_CPU)[1]
    for line in sys.stdin:
        spent = int(sum(os.times()[:2]))
        limit(resource.RLIMIT_CPU, spent + 1 + SECONDS)
        os.write(out, json.dumps(same(*json.loads(line))).encode() + b"\n")
        if given != resource.RLIM_INFINITY and spent + 2 * (1 + SECONDS) > given:
            return  # the next comparison needs a fresh process


if __name__ == "__main__":
    main()
