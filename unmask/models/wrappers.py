"""Wrappers of a denoiser: classifier-free guidance, suppressed and late tokens, and an early end of finished rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from unmask.core import Beliefs, CacheView, Canvas, Denoiser, Wrapper
from unmask.core.shapes import AtFloat, AtTokens, Bool, Columns
from unmask.core.text import end_of_text, find_stop
from unmask.models.checkpoints.tokenizer import HALF
from unmask.models.model import Model


class Guided(Wrapper):
    """Classifier-free guidance (LLaDA's `cfg_scale`): logits un + (scale + 1)(cond − un), for twice the rows.

    The unconditional row has everything that was given masked.
    """

    def __init__(self, inner: Denoiser, given: Bool[Tensor, "problem pos"], scale: float):
        super().__init__(inner)
        self.given, self.scale = given, scale

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        both = self.inner(self._doubled(canvas), torch.cat([at, at]), cache and cache.derive("guided", self._both))
        half = len(canvas) * at.shape[1]

        def read(places: Tensor) -> Tensor:
            cond, uncond = both.read(places), both.read(places + half)
            guided = uncond + (self.scale + 1) * (cond - uncond)
            # Where either is -inf, the difference is meaningless.
            return torch.where(cond.isneginf() | uncond.isneginf(), cond, guided)

        return replace(both, read=read, shape=(len(canvas), at.shape[1]), computed=None)

    def _doubled(self, canvas: Canvas) -> Canvas:
        """Return every row as it is, then every row with what was given masked."""
        rows = torch.arange(len(canvas), device=canvas.tokens.device)
        both = canvas.rows(torch.cat([rows, rows]))
        hidden = torch.cat([torch.zeros_like(canvas.real), self.given[canvas.problem]])
        return replace(both, tokens=both.tokens.masked_fill(hidden, self.mask_id))

    def _both(self, cache: CacheView) -> CacheView:
        """Return a view in which entry i becomes the entries 2i and 2i + 1."""
        entries = torch.cat([2 * cache.entries, 2 * cache.entries + 1])
        rows = torch.arange(len(cache.snapshot), device=entries.device)
        snapshot = self._doubled(cache.snapshot).rows(torch.stack([rows, rows + len(rows)], dim=1).flatten())
        window = torch.cat([cache.window, cache.window])
        return replace(cache, snapshot=snapshot, entries=entries, window=window, scale=2)


class Suppressed(Wrapper):
    """Tokens with probability 0 everywhere.

    They are removed before a token is drawn. The published loop edits its logits after the draw, which at a temperature
    above 0 changes nothing. The same holds for `Late`.
    """

    def __init__(self, inner: Denoiser, tokens: Iterable[int]):
        super().__init__(inner)
        self.tokens = torch.tensor(sorted(tokens), device=inner.device)

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        return without(self.inner(canvas, at, cache), self.tokens)


def without(beliefs: Beliefs, tokens: Tensor) -> Beliefs:
    """Return beliefs in which the tokens have probability 0."""
    return replace(beliefs, read=lambda places: beliefs.read(places).index_fill(1, tokens, -torch.inf))


class Late(Wrapper):
    """Tokens that may be drawn but rank below all others: LLaDA's `confidence_eos_eot_inf`, as it is documented.

    Ranks are read from log p, so writing a late token makes its row's score −inf.
    """

    def __init__(self, inner: Denoiser, tokens: Iterable[int]):
        super().__init__(inner)
        self.tokens = torch.tensor(sorted(tokens), device=inner.device)

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        return _LateBeliefs(**vars(self.inner(canvas, at, cache)), late=self.tokens)


@dataclass(frozen=True, kw_only=True)
class _LateBeliefs(Beliefs):
    late: Tensor  # token ids

    @cached_property
    def best(self) -> tuple[AtTokens, AtFloat]:
        token, _ = super().best
        return token, self._ranked(token)

    def draw(self, uniform: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        token, _ = super().draw(uniform, temperature)
        return token, torch.stack([self._ranked(draw) for draw in token.unbind(2)], dim=2)

    def _ranked(self, token: AtTokens) -> AtFloat:
        """Return log p among the other tokens, and −inf for late ones."""
        return without(self, self.late).logp(token)


Ended = Callable[[Canvas], Bool[Tensor, " row"]]


class EarlyEnd(Wrapper):
    """Rows whose answer has ended get end-of-text everywhere else, at no cost: the network is not called for them.

    After end-of-text this is approximate, because the published loop continues to denoise there. After a stop string it
    is exact for a single path, whose text is cut there anyway. It is decided row by row, so it does not depend on the
    batch, and it works under any decoder.
    """

    def __init__(self, inner: Denoiser, eos: Iterable[int], ended: Ended | None = None):
        super().__init__(inner)
        self.eos = torch.tensor(sorted(eos), device=inner.device)
        self.ended = ended or self._after_eos

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        ended = self.ended(canvas)
        if not ended.any():
            return self.inner(canvas, at, cache)
        live, shape = (~ended).nonzero()[:, 0], (0, at.shape[1])
        beliefs = Beliefs(lambda places: places, shape, self.vocab, self.mask_id, self.device)
        if len(live):
            beliefs = self.inner(canvas.rows(live), at[live], cache and cache.take_listed(live.tolist()))
        return beliefs.among(live, len(canvas), int(self.eos[0]), self.dtype)

    def _after_eos(self, canvas: Canvas) -> Bool[Tensor, " row"]:
        """Return the rows whose answer has an end-of-text token with no mask before it."""
        answer = canvas.tokens[:, canvas.start :]
        masks = canvas.masked.cumsum(1)[:, canvas.start :]
        return (torch.isin(answer, self.eos) & (masks == 0)).any(1)


def after_stop(model: Model, stop: Sequence[str]) -> Ended:
    """Return a test for rows whose answer has a stop string with no mask before it: the text will be cut there."""
    last = {model.denoiser.mask_id, *model.eos}

    def is_cut(ids: list[int]) -> bool:
        """Return whether it is certain where the text is cut: no stop string that began earlier can be completed."""
        text = model.text.decode(ids[: end_of_text(ids, last)]).rstrip(HALF)  # whole characters
        place = find_stop(text, stop)
        return place >= 0 and not any(word.startswith(text[at:]) for at in range(place) for word in stop)

    def ended(canvas: Canvas) -> Bool[Tensor, " row"]:
        unfilled = canvas.masked[:, : canvas.start].any(1).tolist()
        answers = canvas.tokens[:, canvas.start :].tolist()
        rows = [not gaps and is_cut(ids) for gaps, ids in zip(unfilled, answers, strict=True)]
        return torch.tensor(rows, device=canvas.tokens.device)

    return ended
