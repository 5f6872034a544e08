"""Positions may be masked again: the canvas ends full, the prompt stays, the trace replays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch

import unmask
from unmask.core import Canvas, Decoder, Frame, Rows, decode
from unmask.models import Model
from unmask.models.network.kv_cache import cached
from unmask.policies.draft import sample

PROMPTS = [[0, 1, 2], [3], [4, 4, 1, 0, 2]]
LENGTH = 6


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


@pytest.fixture(scope="module")
def model() -> Model:
    return unmask.load("toy-transformer(letters=12, width=16, layers=2)")


def blank(model: Model, prompts: list[list[int]]) -> Canvas:
    return Canvas.blank(prompts, LENGTH, model.denoiser.mask_id, dtype=model.denoiser.dtype)


@pytest.mark.parametrize("cache", ["none", "prefix", "dual"])
def test_the_canvas_ends_full_and_the_prompt_stays_in_a_batch_as_alone(model: Model, cache: str):
    denoiser = cached(model.denoiser, cache)
    together = decode(WriteTwice(), denoiser, blank(model, PROMPTS))
    for prompt, result in zip(PROMPTS, together, strict=True):
        (alone,) = decode(WriteTwice(), denoiser, blank(model, [prompt]))
        tokens = result.canvas.tokens[0, int(result.canvas.pad[0]) :]
        assert tokens[: len(prompt)].tolist() == prompt
        assert model.denoiser.mask_id not in tokens.tolist()
        assert torch.equal(tokens, alone.canvas.tokens[0])
        assert result.canvas.order[0, result.canvas.start :].tolist() == [3, 1, 3, 1, 3, 1]


def test_what_is_written_again_sees_what_was_left(model: Model):
    """By hand: predict everything, hide every other position, predict those from the rest."""
    (result,) = decode(WriteTwice(), model.denoiser, blank(model, PROMPTS[:1]))
    canvas = blank(model, PROMPTS[:1])
    first, _ = model.denoiser(canvas, canvas.slots).best
    full = canvas.write(canvas.slots, first, torch.ones_like(first, dtype=torch.bool), 1, torch.zeros(first.shape))
    hidden = canvas.slots[:, ::2]
    again, _ = model.denoiser(full.remask(hidden), hidden).best
    assert result.canvas.at(hidden).tolist() == again.tolist()
    assert result.canvas.at(canvas.slots[:, 1::2]).tolist() == first[:, 1::2].tolist()


def test_a_trace_replays_what_was_masked_again(model: Model):
    frames: list[Frame] = []
    output = unmask.generate(
        model, "abc", decoder=WriteTwice(), length=LENGTH, trace=True, watch=lambda _, frame: frames.append(frame)
    )
    assert output.trace is not None
    replayed = list(output.trace.replay())
    for seen, again in zip(frames, replayed, strict=True):
        for name in ("tokens", "order", "logp"):
            assert torch.equal(getattr(seen.canvas, name), getattr(again.canvas, name))
    assert [int(frame.canvas.masked.sum()) for frame in replayed] == [0, LENGTH // 2, 0]
    assert output.trace.writes() == [[LENGTH], [0], [LENGTH // 2]]
