"""Order search and token search against plain transcriptions, brute force and greedy decoding."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import unmask
from tests.decoders.plain_order_or_token_search import Score, Vary, search
from unmask.core import Canvas, decode, decoder
from unmask.models import Model


def transformer(seed: int = 0) -> Model:
    return unmask.load(f"toy-transformer(letters=8, seed={seed})", dtype="float64")


def forward_of(model: Model) -> Callable[[Tensor], Tensor]:
    """Whole logits of any rows, full ones too."""

    def forward(tokens: Tensor) -> Tensor:
        mask = model.denoiser.mask_id
        blank = Canvas.blank([[mask] * tokens.shape[1]] * len(tokens), 0, mask, infill=True, dtype=torch.float64)
        every = torch.arange(tokens.shape[1]).expand_as(tokens)
        beliefs = model.denoiser(replace(blank, tokens=tokens), every)
        return beliefs.read(torch.arange(tokens.numel())).view(*tokens.shape, -1)

    return forward


def run(model: Model, spec: str, prompts: list[list[int]], length: int):
    canvas = Canvas.blank(prompts, length, model.denoiser.mask_id, infill=True, dtype=model.denoiser.dtype)
    return decode(decoder.make(spec), model.denoiser, canvas)


@pytest.mark.parametrize("score", ["visible", "path"])
@pytest.mark.parametrize("vary", ["order", "token"])
@pytest.mark.parametrize(("beams", "block"), [(1, 6), (2, 3), (3, 6), (3, 4), (5, 2)])
def test_a_search_equals_its_plain_transcription(vary: Vary, score: Score, beams: int, block: int):
    for seed, prompt in enumerate([[1, 2, 3], [4, 8, 5, 8, 2]]):  # 8 is the mask: the second has gaps
        model = transformer(seed)
        spec = f"{vary}-search(beams={beams}, block={block}, score={score})"
        [found] = run(model, spec, [prompt], 6)
        plain, forwards = search(forward_of(model), prompt, 6, 8, vary=vary, score=score, beams=beams, block=block)
        assert [tuple(row) for row in found.canvas.tokens.tolist()] == [row.x for row in plain]
        assert found.score == pytest.approx([row.score for row in plain], abs=1e-9)
        assert found.cost.forward_passes == forwards
        length = 6 + prompt.count(8)
        assert (
            found.cost.forward_passes <= decoder.make(spec).max_forward_passes(length) <= max(beams**2 * length, length)
        )


@pytest.mark.parametrize("vary", ["order", "token"])
def test_a_batch_of_searches_decodes_as_its_rows_alone(vary: str):
    model = transformer(3)
    prompts = [[1, 2, 3, 4, 5], [7], [2, 2, 6]]
    for spec in (f"{vary}-search", f"{vary}-search(score=path, block=2)"):
        together = run(model, spec, prompts, 5)
        for prompt, mine in zip(prompts, together, strict=True):
            [alone] = run(model, spec, [prompt], 5)
            pad = int(mine.canvas.pad[0])
            assert torch.equal(alone.canvas.tokens, mine.canvas.tokens[:, pad:])
            assert alone.score == mine.score
            assert (alone.cost.forward_passes, alone.cost.computed) == (mine.cost.forward_passes, mine.cost.computed)


def test_token_search_over_every_token_finds_the_likeliest_text():
    for seed in range(4):
        model = unmask.load(f"toy-joint(letters=3, seed={seed})")
        prompt = [0, 2]
        [found] = run(model, "token-search(score=path, beams=81)", [prompt], 4)
        joint = model.denoiser.table(6)  # type: ignore[attr-defined]
        given = joint[tuple(prompt)]
        best = max(itertools.product(range(3), repeat=4), key=lambda text: float(given[text]))
        assert found.canvas.tokens[0, 2:].tolist() == list(best)
        assert found.score[0] == pytest.approx(float((given[best] / given.sum()).log()), abs=1e-9)


def test_a_beam_of_one_is_greedy_by_confidence():
    model = transformer(5)
    [greedy] = run(model, "low-confidence(steps=7, block=4)", [[1, 2]], 7)
    for vary, score in itertools.product(("order", "token"), ("visible", "path")):
        [found] = run(model, f"{vary}-search(beams=1, block=4, score={score})", [[1, 2]], 7)
        assert torch.equal(found.canvas.tokens, greedy.canvas.tokens)
        assert found.cost.forward_passes == 7


def test_equal_texts_reached_by_different_orders_are_kept_once():
    [found] = run(transformer(), "order-search(beams=4, score=path)", [[1, 2, 3]], 6)
    assert len({tuple(row) for row in found.canvas.tokens.tolist()}) == len(found.canvas)


def test_one_place_alone_is_computed_as_among_others():
    """A head asked about a single place must not add up in another order, nor a score depend on padding."""
    model = unmask.load("toy-transformer(letters=8)")
    prompts = [[1, 2, 3, 4, 5], [7], [2, 2, 6]]
    for spec in ("left-to-right(temperature=1.0)", "low-confidence(block=1)"):
        together = run(model, spec, prompts, 5)
        for prompt, mine in zip(prompts, together, strict=True):
            assert run(model, spec, [prompt], 5)[0].score == mine.score
