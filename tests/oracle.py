"""The plain transcription driven with the settings of a registered decoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from tests.decoders import plain_loops
from unmask.bench import reference_loops as plain
from unmask.core import Canvas, Decoder, Denoiser, decoder
from unmask.policies.likelihood import Likelihood, likelihood


class CountedForward:
    """Whole logits of any rows, MASK's own included where the model gives one; counts the rows it is asked for."""

    def __init__(self, denoiser: Denoiser):
        self.denoiser, self.rows = denoiser, 0

    def __call__(self, tokens: Tensor) -> Tensor:
        self.rows += len(tokens)
        canvas = Canvas.of(tokens.tolist(), 0, self.denoiser.mask_id, "cpu", self.denoiser.dtype)
        beliefs = self.denoiser(canvas, torch.arange(tokens.shape[1]).expand_as(tokens))
        return beliefs.read(torch.arange(tokens.numel())).unflatten(0, (tokens.shape[0], tokens.shape[1]))


def _path(order: plain.Order) -> Callable[..., plain.Path]:
    def run(*args: Any, **settings: Any) -> plain.Path:
        return plain.one_path(*args, order=order, **settings)

    return run


def _search(*args: Any, sure: float | None = None, **settings: Any) -> plain.Search:
    if sure is None:
        return plain.order_token_search(*args, **settings)
    return plain_loops.sure_search(*args, sure=sure, **settings)


PLAIN: dict[str, Callable[..., plain.Path | plain.Search]] = {
    "low-confidence": _path("low-confidence"),
    "random": _path("random"),
    "left-to-right": _path("left-to-right"),
    "margin": _path("margin"),
    "entropy": _path("entropy"),
    "adaptive": plain.adaptive,
    "threshold": plain.adaptive,
    "order-token-search": _search,
}


# Decoders that are written plainly, or defined by others that are, in a test of their own.
ELSEWHERE = {
    "order-search": "tests/decoders/test_order_or_token_search.py",
    "token-search": "tests/decoders/test_order_or_token_search.py",
    "vote": "tests/decoders/test_repeat.py",
    "repair": "tests/decoders/test_repair.py",
    "best-of": "tests/decoders/test_repeat.py",
    "search": "tests/decoders/test_search.py",
    "dream": "tests/api/test_dream.py",
}


def plain_settings(made: Decoder) -> dict[str, Any]:
    """As the oracle takes them: a likelihood by its name, and its size if it has one."""
    settings: dict[str, Any] = dict(vars(made))
    if "likelihood" in settings:
        settings["likelihood"] = plain_likelihood(settings["likelihood"])
    assert settings.pop("draws", None) is None  # ours; tested by themselves
    assert not settings.pop("distinct", False)
    assert settings.pop("answer", "score") == "score"
    return settings


def plain_likelihood(chosen: Likelihood) -> plain.Likelihood:
    name, sizes = likelihood.name(chosen), tuple(vars(chosen).values())
    return cast(plain.Likelihood, (name, *sizes) if sizes else name)


def plainly(
    made: Decoder, forward: CountedForward, prompt: Sequence[int], length: int, seed: int = 0, **more: Any
) -> plain.Path | plain.Search:
    """What the oracle says this decoder does with one problem."""
    settings = plain_settings(made) | {"seed": seed} | more
    return PLAIN[decoder.name(made)](forward, prompt, length, forward.denoiser.mask_id, **settings)
