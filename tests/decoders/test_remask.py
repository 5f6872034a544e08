"""Positions may be masked again: the canvas ends full, the prompt stays, the trace replays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
import torch

import unmask
from tests.decoders.examples import PROMPTS, blank, run, texts
from tests.decoders.test_repair import INNERS
from unmask.core import Decoder, Frame, Rows
from unmask.models.network.kv_cache import cached
from unmask.policies.remasking import sample


@dataclass(frozen=True)
class WriteTwice(Decoder):
    """Writes everything at once, masks every other position again, and writes those in the light of the rest."""

    def __call__(self, rows: Rows) -> Iterator[Frame]:
        everything = slice(0, rows.length)
        for step in (1, 3):
            rows = rows.enter(everything)
            draft = sample(rows, rows.slots, step, temperature=0.0)
            rows = draft.write(draft.masked)
            yield rows.frame(step)
            if step == 1:
                rows = rows.enter(everything).remask(rows.slots[:, ::2])
                yield rows.frame(2)

    def max_forward_passes(self, length: int) -> int:
        return 2


MODEL = unmask.load("toy-transformer(letters=5, width=16, layers=2, seed=1)")
NETWORK = MODEL.denoiser


@pytest.mark.parametrize("cache", ["none", "prefix", "dual"])
def test_the_canvas_ends_full_and_the_prompt_stays_in_a_batch_as_alone(cache: str):
    denoiser = cached(NETWORK, cache)
    together = run(WriteTwice(), denoiser)
    for prompt, result in zip(PROMPTS, together, strict=True):
        [[tokens]] = texts([result])
        assert tokens[: len(prompt)] == prompt
        assert NETWORK.mask_id not in tokens
        assert texts(run(WriteTwice(), denoiser, [prompt])) == [[tokens]]
        assert result.canvas.order[0, result.canvas.start :].tolist() == [3, 1, 3, 1, 3, 1]


def test_what_is_written_again_sees_what_was_left():
    """By hand: predict everything, hide every other position, predict those from the rest."""
    (result,) = run(WriteTwice(), NETWORK, PROMPTS[:1])
    canvas = blank(NETWORK, PROMPTS[:1])
    first, _ = NETWORK(canvas, canvas.slots).best
    full = canvas.write(canvas.slots, first, torch.ones_like(first, dtype=torch.bool), 1, torch.zeros(first.shape))
    hidden = canvas.slots[:, ::2]
    again, _ = NETWORK(full.remask(hidden), hidden).best
    assert result.canvas.at(hidden).tolist() == again.tolist()
    assert result.canvas.at(canvas.slots[:, 1::2]).tolist() == first[:, 1::2].tolist()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "made",
    [
        WriteTwice(),
        "search(budget=90, sure=0.9, plausible=0.01)",
        *(f"best-of(n=2, inner=repair(inner={inner}, rounds=3, share=0.5))" for inner in INNERS),
    ],
    ids=str,
)
def test_a_trace_replays_what_was_masked_again(made: str | Decoder, seed: int):
    frames: list[Frame] = []
    output = unmask.generate(
        MODEL, "abc", decoder=made, length=8, seed=seed, trace=True, watch=lambda _, frame: frames.append(frame)
    )
    assert output.trace is not None
    for seen, again in zip(frames, output.trace.replay(), strict=True):
        for name in ("tokens", "order", "logp"):
            assert torch.equal(getattr(seen.canvas, name), getattr(again.canvas, name))
    masks = [int(frame.canvas.masked.sum()) for frame in frames]
    assert any(later > earlier for earlier, later in pairwise(masks))
    if isinstance(made, WriteTwice):
        assert (masks, output.trace.writes()) == ([0, 4, 0], [[8], [0], [4]])
