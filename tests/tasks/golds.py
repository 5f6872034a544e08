"""Grades the gold answer of every problem of every task, alone or beside other work; run by hand.

python tests/tasks/golds.py --data DIR
python tests/tasks/golds.py --data DIR --load 8
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from itertools import islice

from unmask.tasks import data, grading, task

SPECS = [
    *("gsm8k", "gsm8k(split=train)", "math500", "countdown-d1", "sudoku-d1"),
    *("humaneval", "mbpp", "mbpp(subset=sanitized)"),
    *("countdown", "sudoku", "mini-gsm", "mini-math", "mini-code"),
]
GENERATED = 300  # problems of an endless family


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--data", required=True)
    options.add_argument("--load", type=int, default=0, help="how many endless loops run beside the graders")
    chosen = options.parse_args()
    data.use(chosen.data)
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(chosen.load)]
    wrong = 0
    try:
        for spec in SPECS:
            wrong += graded(spec)
    finally:
        for other in others:
            other.kill()
            other.wait()
    print(f"load {os.getloadavg()[0]:.1f}, wrong golds: {wrong}")
    sys.exit(wrong > 0)


def graded(spec: str) -> int:
    source = task.make(spec, **({"allow_code": True} if spec.startswith(("humaneval", "mbpp")) else {}))
    problems = list(islice(source.problems(), GENERATED if spec in SPECS[-5:] else None))
    began = time.monotonic()
    scores = grading.grade(source, [json.dumps({"id": each.id, "output": each.gold}) for each in problems])
    notes = [(each.id, grade.note) for each, grade in zip(problems, scores.grades, strict=True) if not grade.right]
    print(
        f"{spec}: {scores.right} of {len(problems)} in {time.monotonic() - began:.0f} s {notes[:3] or ''}", flush=True
    )
    return len(notes)


if __name__ == "__main__":
    main()
