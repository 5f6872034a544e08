"""Settings worth trying of every registered decoder, and how they are run on a few prompts.

A decoder that is not named here is tried as it comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import pytest
from _pytest.mark import ParameterSet

import unmask.decoders  # noqa: F401  registers
from unmask.core import Canvas, Decoded, Decoder, Denoiser, decode, decoder

PROMPTS = [[0, 1, 2], [3], [4, 4, 1, 0, 2]]
LENGTH = 6
EXAMPLES: dict[str, list[str]] = {
    "order-token-search": [
        "order-token-search(beams=1, temperature=0.7)",
        "order-token-search(beams=3, temperature=0)",
        "order-token-search(beams=4, block=4, temperature=0.8)",
        "order-token-search(beams=3, block=3, steps=5, temperature=1, interval=2, likelihood=all-blocks)",
        "order-token-search(beams=2, block=2, temperature=1.5, likelihood=future-masked, samples=3)",
        "order-token-search(beams=2, block=3, temperature=1, likelihood=interleaved(combs=2))",
        "order-token-search(beams=2, block=5, temperature=1, samples=2, likelihood=leave-out(group=2))",
        "order-token-search(beams=3, block=6, steps=5, temperature=0.8, sure=0.3)",
        "order-token-search(beams=2, block=3, steps=6, temperature=0.5, sure=0.6)",
    ],
    "adaptive": [
        "adaptive(sure=0.5, temperature=0.8)",
        "adaptive(rule=factor, factor=1.5, block=4, temperature=1)",
        "adaptive(rule=entropy, budget=2, block=4)",
    ],
    "threshold": ["threshold(sure=0.5)", "threshold(sure=0.9, block=3)", "threshold(sure=0)"],
    "left-to-right": ["left-to-right(temperature=1)", "left-to-right(block=4, steps=4)"],
    "order-search": ["order-search", "order-search(beams=2, block=3)", "order-search(beams=4, block=2, score=path)"],
    "token-search": ["token-search", "token-search(beams=2, block=3)", "token-search(beams=9, score=path)"],
    "vote": ["vote", "vote(n=3, weighted=true, inner=ots(beams=2, block=3))", "vote(n=2, inner=threshold)"],
    "best-of": [
        "best-of(n=3)",
        "best-of(n=2, inner=random(temperature=1.0))",
        "best-of(n=2, inner=order-search)",
        "best-of(n=3, inner=adaptive(sure=0.6, temperature=1), likelihood=interleaved(combs=2))",
    ],
    "search": [
        "search(sure=0.5, plausible=0.01)",
        "search(budget=9, width=2, sure=0.6, plausible=0.2, block=3)",
        "search(budget=40, width=3, sure=1, plausible=0.001, likelihood=leave-out(group=2))",
    ],
    "dream": ["dream(alg=entropy, steps=5)", "dream(temperature=0.8, alg_temp=0.5, top_p=0.9)"],
    "repair": [
        "repair(inner=adaptive(sure=0.5, temperature=1), rounds=3)",
        "repair(inner=random(temperature=1.0), share=0.5, likelihood=leave-out(group=2))",
        "repair(inner=ots(beams=2, block=3, temperature=1), rounds=1, share=1, likelihood=block)",
    ],
}
# Decoders whose forward passes depend on the text: `max_forward_passes` is the most.
UP_TO = {"adaptive", "repair", "search", "threshold", "order-search", "token-search"}


def specs() -> list[str]:
    """One line a decoder and example: what the laws are parametrised over."""
    return [spec for name in decoder for spec in EXAMPLES.get(name, _plain_examples(name))]


def first_fast() -> list[ParameterSet]:
    """The same for costly laws: the first example of each decoder is quick to try, the others are slow tests."""
    firsts = {EXAMPLES.get(name, _plain_examples(name))[0] for name in decoder}
    return [pytest.param(spec, marks=[pytest.mark.slow] * (spec not in firsts)) for spec in specs()]


def _plain_examples(name: str) -> list[str]:
    known = {field.name for field in fields(decoder.find(name))}  # type: ignore[arg-type]
    tempered = [f"{name}(temperature=0.8)"] if "temperature" in known else []
    blocks = [f"{name}(block=3, steps=5, temperature=1)"] if {"block", "steps", "temperature"} <= known else []
    return [name, *tempered, *blocks]


def exact_rows(made: Decoder) -> bool:
    inner = getattr(made, "inner", made)
    return not {decoder.name(made), decoder.name(inner)} & UP_TO and getattr(inner, "sure", None) is None


def blank(denoiser: Denoiser, prompts: Sequence[Sequence[int]] = PROMPTS, length: int = LENGTH) -> Canvas:
    return Canvas.blank(prompts, length, denoiser.mask_id, infill=True, dtype=denoiser.dtype)


def run(
    spec: str | Decoder,
    denoiser: Denoiser,
    prompts: Sequence[Sequence[int]] = PROMPTS,
    length: int = LENGTH,
    seed: int = 0,
) -> list[Decoded]:
    return decode(decoder.make(spec), denoiser, blank(denoiser, prompts, length), seed)


def texts(results: Sequence[Decoded]) -> list[list[list[int]]]:
    """Return every final row of every problem, padding apart."""
    return [result.canvas.tokens[:, int(result.canvas.pad[0]) :].tolist() for result in results]


def facts(results: Sequence[Decoded]) -> list[tuple[list[list[int]], list[float], int, int, int]]:
    """Return what a problem must have in common alone and in any batch: texts, scores to the bit, and costs."""
    costs = [(r.cost.forward_passes, r.cost.computed, r.cost.positions) for r in results]
    return [(rows, r.score, *cost) for rows, r, cost in zip(texts(results), results, costs, strict=True)]
