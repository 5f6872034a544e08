"""Shapes are checked on every call, examples are the same on every machine, and one thread does the work."""

from jaxtyping import install_import_hook

# Before anything imports unmask. Tasks hold no tensor, and their interpreter would be checked at every step.
ROOMS = (
    "api",
    "bench",
    "cli",
    "compat",
    "core",
    "decoders",
    "experiments",
    "integrations",
    "models",
    "policies",
    "report",
    "runs",
    "serve",
    "training",
    "view",
)
install_import_hook([f"unmask.{room}" for room in ROOMS], "beartype.beartype")

import unmask  # noqa: E402, F401, I001  before torch, which then computes with one order of summation

import os  # noqa: E402
import sys  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from unmask.cli import main  # noqa: E402
from unmask.tasks.data import VARIABLE  # noqa: E402

torch.set_num_threads(1)
settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.load_profile("fixed")


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs `unmask …` in this process: exit code, standard output, standard error."""
    before = os.environ.get(VARIABLE)

    def command(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["unmask", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, shown.out, shown.err

    yield command
    os.environ.pop(VARIABLE, None)  # --data holds for good: the next test is to find its own
    if before is not None:
        os.environ[VARIABLE] = before
