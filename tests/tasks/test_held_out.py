"""The shipped marks against the benchmark files, where those are at hand."""

import os
from pathlib import Path

import pytest

from unmask.tasks.generated import HELD_OUT
from unmask.tasks.held_out import marks

DATA = Path(os.environ.get("UNMASK_DATA", "../shared/data"))


@pytest.mark.skipif(not (DATA / "countdown").is_dir(), reason="the benchmark files are not here")
def test_every_published_problem_is_marked():
    assert set(marks(DATA)) == HELD_OUT
