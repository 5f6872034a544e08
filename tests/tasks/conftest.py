"""Fixtures of the tests that need benchmark files or the sandbox, which skip where these are missing."""

import os
from pathlib import Path

import pytest

from unmask.errors import UnmaskError
from unmask.tasks.data import VARIABLE
from unmask.tasks.sandbox.run import sandbox_method

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in UNMASK_DATA, else the one shared beside the checkout."""
    folder = Path(os.environ.get(VARIABLE) or SHARED)
    if not folder.is_dir():
        pytest.skip(f"no benchmark files: set {VARIABLE}")
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder


@pytest.fixture
def sandbox() -> str:
    """Return how programs are confined on this machine."""
    try:
        return sandbox_method()
    except UnmaskError as error:
        pytest.skip(str(error))
