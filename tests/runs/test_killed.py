"""The command itself on the embedded model, killed like a machine would kill it."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.runs.nano import lasting, run_here, small_grid
from tests.runs.processes import evaluating, finished, lines
from unmask.runs.store import RECORDS, read_run

DECODERS = ["low-confidence(steps=8)", "ots(beams=2, steps=4)"]


def words(out: Path, batch: int) -> list[str]:
    asked = [word for spec in DECODERS for word in ("--decoder", spec)]
    return ["--model", "tiny", "--task", "countdown", *asked, "--length", "16", "--limit", "40", "--samples", "2"] + [
        *("--device", "cpu", "--batch", str(batch), "--out", str(out))
    ]


@pytest.mark.slow
def test_the_command_killed_at_twenty_random_moments_and_resumed_gives_the_undisturbed_records(tmp_path: Path):
    draw = random.Random(11)
    out = tmp_path / "killed"
    seen = []
    for _ in range(20):
        with evaluating(*words(out, draw.choice([1, 2, 7]))) as run:
            time.sleep(1.5 + 2.5 * draw.random())  # from before its first import to the middle of its work
            os.kill(run.pid, signal.SIGKILL)
            run.wait()
        seen.append(lines(out / RECORDS))
    code, printed, err = finished(*words(out, 64))
    assert code == 0, err
    assert "160 records in" in printed
    whole = run_here(
        small_grid("tiny", tasks=["countdown"], decoders=DECODERS, lengths=[16], limit=40, samples=2),
        tmp_path / "whole",
    )
    assert lasting(read_run(out)) == lasting(whole)
    assert lines(out / RECORDS) == 160
    assert len(set(seen)) > 4, f"the kills hit too few moments: {seen}"
