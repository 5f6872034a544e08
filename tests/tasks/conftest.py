"""Benchmark files for the tests that need them: the folder in UNMASK_DATA, else the one shared beside the checkout."""

import os
from pathlib import Path

import pytest

from unmask.tasks.data import VARIABLE

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(os.environ.get(VARIABLE) or SHARED)
    if not folder.is_dir():
        pytest.skip(f"no benchmark files: set {VARIABLE}")
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder
