"""Seconds of decoders, and the machine and arithmetic of what was measured."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from typing import Any

import torch

from unmask.models import Model
from unmask.runs.placement import Placement


def seconds_of(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return round(time.perf_counter() - start, 5)


def circumstances(model: Model, placement: Placement) -> dict[str, Any]:
    device, dtype = model.denoiser.device, str(model.denoiser.dtype).removeprefix("torch.")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    here = {"device": device.type, "name": name, "torch": torch.__version__, "threads": torch.get_num_threads()}
    return {"machine": here | {"dtype": dtype}, "precision": placement.precision}
