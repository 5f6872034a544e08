import signal
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import torch

from tests.models.folders import refused
from unmask.models import devices
from unmask.models.checkpoints.random_weights import random_folder, random_shape
from unmask.models.devices import check_fits, choose_dtype
from unmask.models.load import load_folder


@pytest.fixture
def llada(tmp_path: Path) -> Path:
    return random_folder(tmp_path / "llada", "llada", "nano")


@pytest.fixture
def untested() -> Iterator[None]:
    """16-bit arithmetic has not been tested in this process."""
    devices.half_works.cache_clear()
    yield
    devices.half_works.cache_clear()


@pytest.mark.usefixtures("untested")
def test_half_precision_on_a_cpu_that_cannot(llada: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test process dies as on CPUs that announce instructions they do not have."""
    monkeypatch.setattr(devices, "_PROBE", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    for dtype in ("bfloat16", torch.float16):
        refused(lambda dtype=dtype: load_folder(llada, dtype=dtype), "this CPU cannot compute in", "dtype='float32'")
    load_folder(llada)  # the default needs no test


@pytest.mark.usefixtures("untested")
def test_half_precision_is_tested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: Iterator[int] = iter([0, -signal.SIGILL])
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: subprocess.CompletedProcess([], next(codes)))
    assert choose_dtype("bfloat16", torch.device("cpu")) == torch.bfloat16
    assert choose_dtype("float16", torch.device("cpu")) == torch.float16
    devices.half_works.cache_clear()
    refused(lambda: choose_dtype("bfloat16", torch.device("cpu")), "this CPU cannot compute in bfloat16")


def test_a_model_that_does_not_fit_is_refused_before_memory_is_allocated(
    llada: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "half_works", lambda: True)
    monkeypatch.setattr(devices, "free", lambda device: 20 * 10**9)
    shape, cpu = random_shape("llada", "8b"), torch.device("cpu")
    words = ("needs about 33", "32.1 GB of weights", "cpu has 20.0 GB free", "dtype='bfloat16' would fit")
    refused(lambda: check_fits("GSAI-ML/LLaDA-8B-Instruct", shape, torch.float32, cpu), *words)
    monkeypatch.setattr(devices, "half_works", lambda: False)
    refused(lambda: check_fits("it", shape, torch.float32, cpu), "smaller model")
    monkeypatch.setattr(devices, "free", lambda device: 1000)
    loading = import_module("unmask.models.load")  # the package has a function of this name
    monkeypatch.setattr(loading, "empty", lambda *a, **k: pytest.fail("memory was allocated before the refusal"))
    refused(lambda: load_folder(llada), "needs about", "cpu has 1.0 kB free")


def test_free_memory_is_plausible() -> None:
    size = devices.free(torch.device("cpu"))
    assert size is None or 10**8 < size < 10**14
    assert devices.free(torch.device("meta")) is None


def test_unknown_devices_and_dtypes(llada: Path) -> None:
    refused(lambda: load_folder(llada, device="gpu"), "unknown device 'gpu'", "did you mean 'cuda'?")
    refused(lambda: load_folder(llada, dtype="bf16"), "dtype 'bf16'", "did you mean 'bfloat16'?")
    refused(lambda: load_folder(llada, dtype=torch.int8), "dtype 'int8'")
    refused(lambda: load_folder(llada, device="xpu:9"), "device 'xpu:9' is not available", "'cpu'")
    if not torch.cuda.is_available():
        refused(lambda: load_folder(llada, device="cuda"), "torch sees no GPU", "device='cpu'")
