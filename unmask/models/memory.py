"""What a model will need and what there is: asked before anything is loaded."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import torch

from unmask.errors import UnmaskError, nearest
from unmask.models.transformer import Shape

DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8}  # bytes a weight
WORKING = 4096  # positions in flight that the estimate makes room for
_PROBE = """
import torch
for dtype in (torch.bfloat16, torch.float16):
    x = torch.ones(64, 64, dtype=dtype)
    torch.nn.functional.linear(torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]), x)
"""


def choose_dtype(dtype: str | torch.dtype | None, device: torch.device) -> torch.dtype:
    """The asked dtype, or the device's own: float32 on a CPU, bfloat16 elsewhere."""
    if dtype is None:
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    name = str(stored_dtype(dtype)).removeprefix("torch.")
    if device.type == "cpu" and DTYPES[name] == 2 and not half_works():
        raise UnmaskError(
            f"this CPU cannot compute in {name} (a trial in a process of its own died): use dtype='float32'"
        )
    return getattr(torch, name)


def stored_dtype(dtype: str | torch.dtype) -> torch.dtype:
    """One that weights can have, whether or not this machine computes in it."""
    name = dtype if isinstance(dtype, str) else str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise UnmaskError(f"dtype {name!r} is not one a model can have: {nearest(name, DTYPES)}")
    return getattr(torch, name)


def choose_device(device: str | torch.device) -> torch.device:
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise UnmaskError(f"unknown device {str(device)!r}: {nearest(str(device), ('cpu', 'cuda', 'mps'))}") from None
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise UnmaskError(f"device {str(device)!r} is not there: torch sees no GPU; use device='cpu'")
    try:
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError):  # by kind of device
        raise UnmaskError(f"device {str(device)!r} is not there: {_devices()}") from None
    return chosen


def _devices() -> str:
    return " and ".join(["'cpu'", *(f"'cuda:{index}'" for index in range(torch.cuda.device_count()))]) + " can be had"


@cache
def half_works() -> bool:
    """Some virtualised CPUs announce instructions they do not have, so a trial may kill the process that makes it."""
    trial = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, timeout=120, check=False)
    return trial.returncode == 0


def weights_bytes(shape: Shape, dtype: str) -> int:
    return shape.parameters * DTYPES[dtype]


def needed(shape: Shape, dtype: str) -> int:
    """Weights, the hidden states of `WORKING` positions, and the logits of those read at a time."""
    states = WORKING * (6 * shape.width + 3 * shape.hidden) * DTYPES[dtype]
    logits = min(2**24, WORKING * shape.vocab) * 12
    return weights_bytes(shape, dtype) + states + logits


def free(device: torch.device) -> int | None:
    """Bytes that can still be had; None where the device does not say."""
    if device.type == "cuda":
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + held
    return _host() if device.type == "cpu" else None


def _host() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        there = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return None
    try:  # a container may be given less than its machine has
        group = Path("/sys/fs/cgroup")
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        stat = (line.split() for line in (group / "memory.stat").read_text().splitlines())
        cached = next(int(value) for key, value in stat if key == "inactive_file")
        return min(there, limit - used + cached)
    except (OSError, ValueError, StopIteration):  # the limit may be the word `max`
        return there


def check_fits(name: str, shape: Shape, dtype: torch.dtype, device: torch.device) -> None:
    wide = str(dtype).removeprefix("torch.")
    there, wanted = free(device), needed(shape, wide)
    if there is None or wanted <= there:
        return
    others = "; ".join(_alternatives(shape, wide, device)) or "use a smaller model or a machine with more memory"
    raise UnmaskError(
        f"{name} needs about {said(wanted)} in {wide} ({said(weights_bytes(shape, wide))} of weights), "
        f"{device} has {said(there)} free: {others}"
    )


def _alternatives(shape: Shape, wide: str, device: torch.device) -> list[str]:
    """What would fit here, narrower dtypes first."""
    found = []
    places = [device]
    if torch.cuda.is_available():
        places += [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
    places.append(torch.device("cpu"))
    for place in dict.fromkeys(places):
        there = free(place)
        for dtype in ("bfloat16", "float32"):
            halved = place.type == "cpu" and dtype == "bfloat16"
            if there is None or (place == device and dtype == wide) or (halved and not half_works()):
                continue
            if needed(shape, dtype) <= there:
                found.append(f"device='{place}' with dtype='{dtype}' would fit ({said(needed(shape, dtype))})")
                break
    return found


def said(size: int) -> str:
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} bytes"
