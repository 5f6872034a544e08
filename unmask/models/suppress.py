"""Keeping tokens back: never written (`Suppressed`), or written last (`Late`). Both act before a token is drawn.

The published loop edits its logits after the draw, which at a temperature above 0 changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from unmask.core import Beliefs, Canvas, Denoiser, Kept, Wrapper
from unmask.core.shapes import AtFloat, AtTokens, Columns


class Suppressed(Wrapper):
    """The tokens have probability 0 wherever they are asked about."""

    def __init__(self, inner: Denoiser, tokens: Iterable[int]):
        super().__init__(inner)
        self.tokens = torch.tensor(sorted(tokens), device=inner.device)

    def __call__(self, canvas: Canvas, at: Columns, kept: Kept | None = None) -> Beliefs:
        return without(self.inner(canvas, at, kept), self.tokens)


def without(beliefs: Beliefs, tokens: Tensor) -> Beliefs:
    return replace(beliefs, read=lambda places: beliefs.read(places).index_fill(1, tokens, -torch.inf))


class Late(Wrapper):
    """The tokens may be drawn, but rank below all others: LLaDA's `confidence_eos_eot_inf`, as it is documented.

    Ranks are read from log p, so a written late token leaves −inf in its row's score.
    """

    def __init__(self, inner: Denoiser, tokens: Iterable[int]):
        super().__init__(inner)
        self.tokens = torch.tensor(sorted(tokens), device=inner.device)

    def __call__(self, canvas: Canvas, at: Columns, kept: Kept | None = None) -> Beliefs:
        return _LateBeliefs(**vars(self.inner(canvas, at, kept)), late=self.tokens)


@dataclass(frozen=True, kw_only=True)
class _LateBeliefs(Beliefs):
    late: Tensor

    @cached_property
    def best(self) -> tuple[AtTokens, AtFloat]:
        token, _ = super().best
        return token, self._ranked(token)

    def draw(self, uniform: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        token, _ = super().draw(uniform, temperature)
        return token, torch.stack([self._ranked(draw) for draw in token.unbind(2)], dim=2)

    def _ranked(self, token: AtTokens) -> AtFloat:
        """log p once the late tokens are out of the question: −inf for themselves."""
        return without(self, self.late).logp(token)
