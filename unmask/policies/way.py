"""A way to score a finished text: from passages to judgements, each independent of the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from unmask.core import Denoiser
from unmask.policies.passage import Passage
from unmask.registry import Registry


@dataclass(frozen=True)
class Judgement:
    """What a way says of a passage."""

    logps: list[float]  # what each token adds to the log-likelihood
    rows: int  # asked of the network
    distinct: int  # computed: identical rows of a passage are computed once
    positions: int  # computed
    error: float | None = None  # the standard error of the sum, where it is an estimate
    greedy: bool | None = None  # whether each token was the likeliest when it was revealed, where any was


class Way(ABC):
    @abstractmethod
    def __call__(self, passages: Sequence[Passage], denoiser: Denoiser, seed: int) -> list[Judgement]: ...


way: Registry[Way] = Registry("way")
