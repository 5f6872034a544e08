"""Devices, dtypes and memory, checked before anything is loaded."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import torch
from rich.filesize import decimal as format_bytes

from unmask.errors import UnmaskError, check_known, nearest
from unmask.models.network.transformer import Shape

DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8}  # bytes per weight
WORKING = 4096  # positions computed at a time, for the estimate
_PROBE = """
import torch
for dtype in (torch.bfloat16, torch.float16):
    x = torch.ones(64, 64, dtype=dtype)
    torch.nn.functional.linear(torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]), x)
"""


def choose_dtype(dtype: str | torch.dtype | None, device: torch.device) -> torch.dtype:
    """Return the given dtype, by default float32 on a CPU and bfloat16 elsewhere; refuse one that the CPU lacks."""
    if dtype is None:
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    name = str(stored_dtype(dtype)).removeprefix("torch.")
    if device.type == "cpu" and DTYPES[name] == 2 and not half_works():
        raise UnmaskError(f"this CPU cannot compute in {name} (a test process was killed): use dtype='float32'")
    return getattr(torch, name)


def stored_dtype(dtype: str | torch.dtype) -> torch.dtype:
    """Return a dtype that weights can have, whether or not this machine can compute in it."""
    name = dtype if isinstance(dtype, str) else str(dtype).removeprefix("torch.")
    check_known(DTYPES, dtype=name)
    return getattr(torch, name)


def named_device(device: str | torch.device) -> torch.device:
    """Return the device of a name, whether or not this machine has it."""
    try:
        chosen = torch.device(device)
    except RuntimeError:
        instead = "did you mean 'cuda'?" if device == "gpu" else nearest(str(device), ("cpu", "cuda", "mps"))
        raise UnmaskError(f"unknown device {str(device)!r}: {instead}") from None
    if chosen.type == "meta":
        raise UnmaskError("device 'meta' is not supported: it holds no numbers; use cpu, cuda or mps")
    return chosen


def choose_device(device: str | torch.device) -> torch.device:
    """Return the device of a name; refuse one that this machine does not have."""
    chosen = named_device(device)
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise UnmaskError(f"device {str(device)!r} is not available: torch sees no GPU; use device='cpu'")
    try:
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError):  # which one depends on the kind of device
        known = " or ".join(["'cpu'", *(f"'cuda:{index}'" for index in range(torch.cuda.device_count()))])
        raise UnmaskError(f"device {str(device)!r} is not available: use {known}") from None
    return chosen


@cache
def half_works() -> bool:
    """Test 16-bit arithmetic in a child process: some virtual CPUs announce instructions that kill it."""
    trial = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, timeout=120, check=False)
    return trial.returncode == 0


def weights_bytes(shape: Shape, dtype: str) -> int:
    return shape.parameters * DTYPES[dtype]


def needed(shape: Shape, dtype: str) -> int:
    """Estimate the bytes of the weights, the hidden states of `WORKING` positions, and one chunk of logits."""
    hidden = shape.hidden
    if shape.experts is not None:
        hidden = max(hidden, shape.experts.chosen * (shape.experts.hidden + shape.width) + shape.experts.shared)
    states = WORKING * (6 * shape.width + 3 * hidden) * DTYPES[dtype]
    logits = min(2**24, WORKING * shape.vocab) * 12
    return weights_bytes(shape, dtype) + states + logits


def free(device: torch.device) -> int | None:
    """Return the bytes that can still be allocated; None where unknown."""
    if device.type == "cuda":
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + held
    return _host() if device.type == "cpu" else None


def proc_bytes(file: str, key: str) -> int | None:
    """Return an entry of a table under /proc; None where it is missing."""
    try:
        lines = Path("/proc", file).read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key)), None)


def _host() -> int | None:
    available = proc_bytes("meminfo", "MemAvailable")
    if available is None:
        return None
    try:  # a container may have less than its machine
        group = Path("/sys/fs/cgroup")
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        stat = (line.split() for line in (group / "memory.stat").read_text().splitlines())
        cached = next(int(value) for key, value in stat if key == "inactive_file")
        return min(available, limit - used + cached)
    except (OSError, ValueError, StopIteration):  # the limit may be the word `max`
        return available


def check_fits(name: str, shape: Shape, dtype: torch.dtype, device: torch.device) -> None:
    """Refuse a model that needs more memory than the device has, and name what would fit."""
    precision = str(dtype).removeprefix("torch.")
    available, wanted = free(device), needed(shape, precision)
    if available is None or wanted <= available:
        return
    others = "; ".join(_alternatives(shape, precision, device)) or "use a smaller model or a machine with more memory"
    raise UnmaskError(
        f"{name} needs about {format_bytes(wanted)} in {precision} "
        f"({format_bytes(weights_bytes(shape, precision))} of weights), "
        f"{device} has {format_bytes(available)} free: {others}"
    )


def _alternatives(shape: Shape, precision: str, device: torch.device) -> list[str]:
    """Return what would fit on this machine: for each device, the first dtype that does."""
    gpus = [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
    fitting = []
    for other in dict.fromkeys([device, *gpus, torch.device("cpu")]):
        dtypes = ["bfloat16", "float32"] if other.type != "cpu" or half_works() else ["float32"]
        for dtype in dtypes:
            size = needed(shape, dtype)
            if (other, dtype) != (device, precision) and size <= (free(other) or 0):
                fitting.append(f"device='{other}' with dtype='{dtype}' would fit ({format_bytes(size)})")
                break
    return fitting
