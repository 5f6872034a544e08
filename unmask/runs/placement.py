"""Where models run, as one value: the API, grids and jobs hold it whole."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import torch

from unmask.errors import UnmaskError, nearest
from unmask.models import Model, load
from unmask.models.load import registered
from unmask.models.memory import choose_device, choose_dtype, named_device, stored_dtype

Precision = Literal["highest", "high"]


# The comments beside the fields are also the help of the command line's options.
@dataclass(frozen=True)
class Placement:
    """Where a model runs."""

    device: str | None = None  # where the model runs: cpu or cuda; by default a GPU where there is one
    dtype: str | None = None  # of the weights: float32, bfloat16, …; by default the model's own
    precision: str = "highest"  # of float32 products: highest, or high for TF32 on a GPU
    compiled: bool = False  # fuse the operations of each layer; needs a GPU, and time to compile
    batch: int | None = None  # problems decoded together; by default as many as pay
    memory: float | None = None  # gigabytes that may be in use; by default most of what is free

    def __post_init__(self) -> None:
        if self.device is not None:
            named_device(self.device)
        if self.precision not in (known := get_args(Precision)):
            raise UnmaskError(f"precision cannot be {self.precision!r}: {nearest(str(self.precision), known)}")
        if self.batch is not None and self.batch < 1:
            raise UnmaskError(f"batch={self.batch} does not work: choose 1 or more")
        if self.memory is not None and not 0 < self.memory < math.inf:
            raise UnmaskError(f"memory={self.memory} does not work: give gigabytes above 0")

    @property
    def chosen_device(self) -> str:
        if self.device is not None:
            return self.device
        return "cuda" if torch.cuda.is_available() else "cpu"

    @property
    def budget(self) -> int | None:
        """Of memory, in bytes."""
        return None if self.memory is None else int(self.memory * 10**9)

    def load(self, name: str | Path, revision: str | None = None) -> Model:
        if not isinstance(name, str | Path):
            raise UnmaskError(f"a model is a name, a folder or a hub id, not {type(name).__name__}")
        if not str(name):
            raise UnmaskError("the model's name is empty: `unmask list models` shows the known ones")
        return load(name, self.chosen_device, self.dtype, revision=revision, compiled=self.compiled)

    def resolved(self, models: Iterable[str], here: bool = True) -> Placement:
        """With device and dtype written out; `here` tells whether this machine's devices can be asked."""
        device = choose_device(self.chosen_device) if here else torch.device(self.chosen_device)
        dtype = self.dtype or ("float32" if all(map(registered, models)) else None)
        number = choose_dtype(dtype, device) if here or dtype is None else stored_dtype(dtype)
        return replace(self, device=device.type, dtype=str(number).removeprefix("torch."))

    def spec(self) -> dict[str, Any]:
        """What belongs to a run: batch and memory do not change its results."""
        return {name: value for name, value in asdict(self).items() if name not in ("batch", "memory")}
