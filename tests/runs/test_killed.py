"""The command itself on the embedded model, killed like a machine would kill it."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.runs.nano import lasting, run_here, small_grid
from tests.runs.processes import evaluating, finished, lines, wait_for_lines
from unmask.runs.store import RECORDS, read_run

DECODERS = ["low-confidence(steps=8)", "ots(beams=2, steps=4)"]


def words(out: Path, batch: int) -> list[str]:
    grid = ["--model", "tiny", "--task", "countdown", "--length", "16", "--limit", "30", "--samples", "2"]
    for spec in DECODERS:
        grid += ["--decoder", spec]
    return [*grid, "--device", "cpu", "--batch", str(batch), "--out", str(out)]


@pytest.mark.slow
def test_the_command_killed_at_twenty_random_moments_and_resumed_gives_the_undisturbed_records(tmp_path: Path):
    draw = random.Random(11)
    out = tmp_path / "killed"
    seen = []
    for _ in range(20):
        with evaluating(*words(out, draw.choice([1, 2, 7]))) as run:
            if draw.random() < 0.25:
                time.sleep(2 * draw.random())  # while it starts
            else:
                wait_for_lines(out / RECORDS, lines(out / RECORDS) + draw.randrange(1, 8), run)
                time.sleep(0.3 * draw.random())
            os.kill(run.pid, signal.SIGKILL)
            run.wait()
        if draw.random() < 0.5 and lines(out / RECORDS):  # the machine fell with it: the last line is torn
            os.truncate(out / RECORDS, (out / RECORDS).stat().st_size - draw.randrange(1, 400))
        seen.append(lines(out / RECORDS))
    code, printed, err = finished(*words(out, 64))
    assert code == 0, err
    assert "120 records in" in printed
    whole = run_here(
        small_grid("tiny", tasks=["countdown"], decoders=DECODERS, lengths=[16], limit=30, samples=2),
        tmp_path / "whole",
    )
    assert lasting(read_run(out)) == lasting(whole)
    assert lines(out / RECORDS) == 120
    assert len(set(seen)) > 8, f"the kills hit too few moments: {seen}"
