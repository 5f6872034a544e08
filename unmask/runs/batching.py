"""How many problems are decoded together: as many as fit the memory, while larger batches save time per problem.

Results do not depend on it; time and memory do.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

import torch

from unmask.models.memory import free, proc_bytes

FIRST, MOST = 4, 256
SHARE = 0.8  # of the free memory, used unless a budget is given
QUICKER = 0.95  # a doubled batch pays if it brings the time per problem down to this share


@dataclass
class Fit:
    size: int
    most: int = MOST
    pace: float | None = None  # seconds per problem at half this size


class Batches:
    """Sizes by a job's shape: start small, double while that pays, never return to a size that did not fit."""

    def __init__(self, fixed: int | None = None):
        self.fixed = fixed
        self._fits: dict[tuple[str, str, int], Fit] = {}

    def size(self, shape: tuple[str, str, int]) -> int:
        return self._fits.setdefault(shape, Fit(self.fixed or FIRST)).size

    def saw(self, shape: tuple[str, str, int], tried: int, fitted: int, roomy: bool, seconds: float) -> None:
        fit = self._fits[shape]
        if fitted < tried:
            fit.size = fit.most = min(fit.most, fitted)
        elif self.fixed is None and tried == fit.size < fit.most:
            self._grow(fit, roomy, seconds / tried)

    def _grow(self, fit: Fit, roomy: bool, pace: float) -> None:
        if fit.pace is not None and pace > QUICKER * fit.pace:
            fit.most = fit.size  # the last doubling did not pay, so the next would not
        elif roomy:
            fit.pace, fit.size = pace, min(2 * fit.size, fit.most)


class Gauge:
    """Memory in use on a device, against a budget."""

    def __init__(self, device: torch.device, budget: int | None, share: float = 1.0):
        self.device = device
        unused = free(device)
        self.budget = budget if unused is None or budget is not None else self.used() + int(SHARE * share * unused)

    def used(self) -> int:
        if self.device.type == "cuda":
            return torch.cuda.memory_allocated(self.device)
        return proc_bytes("self/status", "VmRSS") or 0

    def begin(self) -> int:
        """Reset the peak; the memory in use before the work."""
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        else:
            with contextlib.suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")
        return self.used()

    def peak(self) -> int:
        """0 where it is not known."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        return proc_bytes("self/status", "VmHWM") or 0

    def roomy(self, base: int, peak: int) -> bool:
        """Whether twice the work would stay inside the budget."""
        return self.budget is None or base + 2 * (peak - base) <= self.budget


def out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "allocate memory" in str(error)  # on a CPU
