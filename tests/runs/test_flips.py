"""Bits that flip on a disk: every flip in a run's folder is noticed or harmless."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.runs.nano import lasting, run_here, small_grid
from unmask.errors import UnmaskError
from unmask.runs.header import HEAD
from unmask.runs.store import RECORDS, Run, read_run

SMALL = {"tasks": ["countdown"], "decoders": ["low-confidence(steps=2)"], "limit": 4}


def flipped(raw: bytes, bit: int) -> bytes:
    place, mask = bit // 8, 1 << bit % 8
    return raw[:place] + bytes([raw[place] ^ mask]) + raw[place + 1 :]


def read_or_refused(folder: Path) -> Run | None:
    try:
        return read_run(folder)
    except UnmaskError:
        return None


def flip(folder: Path, whole: Run, count: int) -> int:
    """How many of so many flips were noticed; the others changed nothing."""
    draw, noticed = random.Random(5), 0
    files = {name: (folder / name).read_bytes() for name in (RECORDS, HEAD)}
    for _ in range(count):
        name = draw.choice([RECORDS, RECORDS, RECORDS, HEAD])
        bits = 8 * len(files[name]) - (8 if name == RECORDS else 0)  # without its last newline the last line is torn
        (folder / name).write_bytes(flipped(files[name], draw.randrange(bits)))
        run = read_or_refused(folder)
        noticed += run is None
        assert run is None or (run.records, run.head) == (whole.records, whole.head)
        (folder / name).write_bytes(files[name])
    return noticed


@pytest.mark.parametrize(("count", "least"), [(100, 91), pytest.param(2000, 1901, marks=pytest.mark.slow)])
def test_flips_are_noticed_or_harmless(model: str, out: Path, count: int, least: int):
    whole = run_here(small_grid(model, **SMALL), out)
    assert flip(out, whole, count) >= least


def test_a_last_line_without_its_newline_is_done_again(model: str, out: Path):
    grid = small_grid(model, **SMALL)
    whole = run_here(grid, out)
    raw = (out / RECORDS).read_bytes()
    (out / RECORDS).write_bytes(flipped(raw, 8 * len(raw) - 3))
    assert len(read_run(out).records) == len(whole.records) - 1
    assert lasting(run_here(grid, out)) == lasting(whole)


@pytest.mark.slow
def test_a_run_resumed_after_a_flip_refuses_or_is_equal(model: str, tmp_path: Path):
    grid, whole, draw = small_grid(model, **SMALL), tmp_path / "whole", random.Random(6)
    expected = lasting(run_here(grid, whole))
    for number in range(40):
        folder = Path(shutil.copytree(whole, tmp_path / str(number)))
        name = draw.choice([RECORDS, HEAD])
        raw = (folder / name).read_bytes()
        (folder / name).write_bytes(flipped(raw, draw.randrange(8 * len(raw))))
        try:
            assert lasting(run_here(grid, folder)) == expected
        except UnmaskError:
            continue
