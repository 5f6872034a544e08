"""The process behind `symbolic.py`: a pair of LaTeX answers a line in, whether they mean the same a line out.

Run as a file and never imported, so that it loads math-verify and nothing of ours.
"""

import json
import os
import resource
import sys

from math_verify import parse, verify

MEMORY = 4 << 30
SECONDS = 3  # of CPU time for one comparison, rounded up: then the kernel ends us, which reads as unequal


def same(gold: str, answer: str) -> bool:
    """Without math-verify's timeouts, which need signals and would measure a clock."""
    try:
        wanted, said = (parse(f"\\boxed{{{side}}}", parsing_timeout=None) for side in (gold, answer))  # pyright: ignore[reportArgumentType]
        return bool(verify(wanted, said, timeout_seconds=None))
    except Exception:
        return False


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    out = os.dup(1)
    os.dup2(2, 1)  # whatever the library prints is no answer
    for line in sys.stdin:
        spent = sum(os.times()[:2])
        resource.setrlimit(resource.RLIMIT_CPU, (int(spent) + 1 + SECONDS, resource.RLIM_INFINITY))
        os.write(out, json.dumps(same(*json.loads(line))).encode() + b"\n")


if __name__ == "__main__":
    main()
