"""Mark the published problems that a generated task could produce, so that none is trained on.

    python tools/held_out.py DATA

writes `unmask/tasks/held_out.txt` for the 256 Countdown problems and the 500 Sudoku puzzles. The other benchmarks need
no marks: their questions are worded unlike any generated one.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from unmask.tasks.generated import countdown
from unmask.tasks.generated.base import mark_of

FILE = Path(__file__).parents[1] / "unmask" / "tasks" / "held_out.txt"


def marks(data: Path) -> Iterator[int]:
    with open(data / "countdown" / "countdown_cd3_test.jsonl", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            numbers = [int(number) for number in record["input"].split(",")]
            yield mark_of("countdown", countdown.form(numbers, int(record["output"])))
    with open(data / "sudoku4x4" / "4x4_test_sudoku.csv", encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            yield mark_of("sudoku", row["Puzzle"].zfill(16))


def text(data: Path) -> str:
    return "".join(f"{mark:016x}\n" for mark in sorted(set(marks(data))))


if __name__ == "__main__":
    FILE.write_text(text(Path(sys.argv[1])), "ascii")
