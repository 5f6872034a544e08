"""Marks the published problems that a generated family could make too, so that none is ever trained on.

    python -m unmask.tasks.held_out DATA

writes `held_out.txt` beside this file: the 256 Countdown problems and the 500 Sudoku puzzles. The other
benchmarks need no mark: no sentence, exercise or function of ours is worded like a question of theirs.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from unmask.tasks import countdown
from unmask.tasks.generated import mark_of


def marks(data: Path) -> Iterator[int]:
    with open(data / "countdown" / "countdown_cd3_test.jsonl", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            numbers = [int(number) for number in record["input"].split(",")]
            yield mark_of("countdown", countdown.form(numbers, int(record["output"])))
    with open(data / "sudoku4x4" / "4x4_test_sudoku.csv", encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            yield mark_of("sudoku", row["Puzzle"].zfill(16))


def main() -> None:
    words = sorted(f"{mark:016x}" for mark in set(marks(Path(sys.argv[1]))))
    Path(__file__).with_suffix(".txt").write_text("\n".join(words) + "\n", "ascii")


if __name__ == "__main__":
    main()
