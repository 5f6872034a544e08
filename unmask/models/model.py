"""A model as its users hold it: a denoiser, and the way between text and tokens."""

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
    """Text ⇄ tokens of one model."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...

    def chat(self, messages: Messages) -> str:
        """Messages in the model's own template; a trailing assistant message is left open to be continued."""
        ...


@dataclass(frozen=True)
class Model:
    name: str
    denoiser: Denoiser = field(repr=False)
    text: Text = field(repr=False)
    eos: frozenset[int]  # tokens that end an answer
    default_length: int = 128


@runtime_checkable
class Source(Protocol):
    """A frozen dataclass registered under a name, from which a model can be loaded."""

    def load(self, device: torch.device, dtype: torch.dtype | None) -> Model: ...


model: Registry[Source] = Registry("model")
