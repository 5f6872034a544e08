from pathlib import Path

import pytest

from tests.runs.nano import nano


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return nano(tmp_path_factory.mktemp("models") / "nano")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "run"
