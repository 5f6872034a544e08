"""From a name to a model on a device."""

from __future__ import annotations

import torch

from unmask.models.model import Model, model


def load(name: str, device: str | torch.device = "cpu", dtype: str | torch.dtype | None = None) -> Model:
    """A registered model by its spec, such as `toy-chain(seed=3)`."""
    wanted = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    return model.make(name).load(torch.device(device), wanted)
