"""In float32 on a CPU a problem decodes to the same tokens in any batch, in any order, with one thread or two."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

import unmask.decoders  # noqa: F401  registers
from unmask import environment
from unmask.core import Canvas, Decoded, decode, decoder
from unmask.models.load import load

PROMPTS = [[3, 1, 4, 1, 5], [9, 2], [6] * 17, [5, 3, 5, 8, 9, 7, 9, 3, 2, 3]]
SPECS = {
    "order-token-search": "order-token-search(beams=3, block=8, temperature=0.8)",
    "low-confidence": "low-confidence(temperature=0.5)",
    "threshold": "threshold(sure=0.3)",
    "adaptive": "adaptive(sure=0.3, temperature=0.5)",
    "best-of": "best-of(n=3, inner=adaptive(sure=0.3, temperature=1), likelihood=interleaved(combs=3))",
    "repair": "repair(inner=adaptive(sure=0.3))",
}
LENGTH = 16


@pytest.fixture(scope="module")
def wide():
    return load("toy-transformer(letters=60, width=128, layers=4, heads=4)").denoiser


@pytest.fixture
def two_threads() -> Iterator[None]:
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def run(spec: str, denoiser, prompts: list[list[int]]) -> list[Decoded]:
    canvas = Canvas.blank(prompts, LENGTH, denoiser.mask_id, dtype=denoiser.dtype)
    return decode(decoder.make(spec), denoiser, canvas, seed=1)


def said(results: list[Decoded]) -> list[tuple[list[list[int]], list[float]]]:
    """Tokens, and scores to the last bit."""
    return [(result.canvas.tokens[:, result.canvas.start :].tolist(), result.score) for result in results]


@pytest.mark.skipif(not environment.deterministic(), reason="torch was loaded before unmask could prepare it")
@pytest.mark.parametrize("spec", [SPECS.get(name, name) for name in decoder])
def test_a_problem_alone_and_in_any_batch_and_order(spec: str, wide):
    together = said(run(spec, wide, PROMPTS))
    assert said(run(spec, wide, PROMPTS[::-1]))[::-1] == together
    assert [said(run(spec, wide, [prompt]))[0] for prompt in PROMPTS[1:3]] == together[1:3]


@pytest.mark.skipif(not environment.deterministic(), reason="torch was loaded before unmask could prepare it")
@pytest.mark.parametrize("spec", [SPECS.get(name, name) for name in decoder])
def test_two_threads_say_what_one_says(spec: str, wide, two_threads: None):
    threaded = said(run(spec, wide, PROMPTS[1:3]))
    torch.set_num_threads(1)
    assert said(run(spec, wide, PROMPTS[1:3])) == threaded


@pytest.mark.parametrize(
    ("before", "told", "outcome"),
    [("", None, "True"), ("import torch; ", None, "False"), ("", "AUTO", "False"), ("", "COMPATIBLE", "True")],
)
def test_the_environment_says_whether_it_was_prepared_in_time(before: str, told: str | None, outcome: str):
    clean = {key: value for key, value in os.environ.items() if key != "MKL_CBWR"}
    code = f"{before}import unmask; print(unmask.environment.deterministic())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=clean | ({"MKL_CBWR": told} if told else {}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == outcome
