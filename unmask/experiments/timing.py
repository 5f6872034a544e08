"""Seconds of decoders, and the machine they were taken on."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from typing import Any

import torch

from unmask.models import Model


def seconds_of(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return round(time.perf_counter() - start, 5)


def machine(model: Model) -> dict[str, Any]:
    device = model.denoiser.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {"device": device.type, "name": name, "torch": torch.__version__, "threads": torch.get_num_threads()}
