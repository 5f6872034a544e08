"""The shipped marks against the benchmark files, where those are available."""

import os
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("UNMASK_DATA") or ROOT.parent / "shared" / "data")


@pytest.mark.skipif(not (DATA / "countdown").is_dir(), reason="the benchmark files are not here")
def test_every_published_problem_is_marked():
    tool = runpy.run_path(str(ROOT / "tools" / "held_out.py"))
    assert tool["text"](DATA) == tool["FILE"].read_text()
