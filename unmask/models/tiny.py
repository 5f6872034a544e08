"""The embedded model: a small LLaDA trained on generated tasks, shipped in the package (docs/tiny.md)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch

from unmask.models.load import load_folder
from unmask.models.model import Model, model


@model("tiny")
@dataclass(frozen=True)
class Tiny:
    folder: ClassVar[Path] = Path(__file__).with_name("tiny_weights")

    def load(self, device: torch.device, dtype: torch.dtype | None) -> Model:
        return load_folder(self.folder, device, dtype or torch.float32, name="tiny")
