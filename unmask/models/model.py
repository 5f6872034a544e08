"""A loaded model: a denoiser, and the conversion between text and tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch

from unmask.core import Denoiser
from unmask.registry import Registry

Messages = Sequence[dict[str, str]]


@runtime_checkable
class Text(Protocol):
    """Conversion between text and tokens."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...

    def chat(self, messages: Messages) -> str:
        """Render messages with the model's chat template; a last assistant message is left open to be continued."""
        ...


@dataclass(frozen=True)
class Model:
    """A denoiser with its tokenizer and defaults, as `load` returns it."""

    name: str
    denoiser: Denoiser = field(repr=False)
    text: Text = field(repr=False)
    eos: frozenset[int]  # tokens that end an answer
    default_length: int = 128  # masks to write by default


@runtime_checkable
class Loader(Protocol):
    """A frozen dataclass registered under a name. One that reads a checkpoint also has its path, `folder`."""

    def load(self, device: torch.device, dtype: torch.dtype | None) -> Model: ...


model: Registry[Loader] = Registry("model")
