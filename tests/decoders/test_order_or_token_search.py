"""Order search and token search against plain transcriptions, brute force and greedy decoding."""

import itertools

import pytest

from tests.decoders.examples import run, texts
from tests.decoders.plain_loops import Score, Vary, order_or_token_search
from tests.oracle import CountedForward
from unmask.core import Denoiser, decoder
from unmask.models.load import load


def transformer(seed: int = 0) -> Denoiser:
    return load(f"toy-transformer(letters=8, seed={seed})", dtype="float64").denoiser


@pytest.mark.parametrize("score", ["visible", "path"])
@pytest.mark.parametrize("vary", ["order", "token"])
@pytest.mark.parametrize(("beams", "block"), [(1, 6), (2, 3), (3, 6), (3, 4), (5, 2)])
def test_a_search_equals_its_plain_transcription(vary: Vary, score: Score, beams: int, block: int):
    spec = f"{vary}-search(beams={beams}, block={block}, score={score})"
    for seed, prompt in enumerate([[1, 2, 3], [4, 8, 5, 8, 2]]):  # 8 is the mask: the second has gaps
        forward = CountedForward(transformer(seed))
        [found] = run(spec, forward.denoiser, [prompt])
        plain = order_or_token_search(forward, prompt, 6, 8, vary=vary, score=score, beams=beams, block=block)
        assert texts([found]) == [[list(row.x) for row in plain]]
        assert found.score == pytest.approx([row.score for row in plain], abs=1e-9)
        length = 6 + prompt.count(8)
        most = decoder.make(spec).max_forward_passes(length)
        assert found.cost.forward_passes == forward.rows <= most <= beams**2 * length


def test_token_search_over_every_token_finds_the_likeliest_text():
    for seed in range(4):
        denoiser = load(f"toy-joint(letters=3, seed={seed})").denoiser
        [found] = run("token-search(score=path, beams=81)", denoiser, [[0, 2]], 4)
        given = denoiser.table(6)[0, 2]  # type: ignore[attr-defined]
        best = max(itertools.product(range(3), repeat=4), key=lambda text: float(given[text]))
        assert texts([found])[0][0] == [0, 2, *best]
        assert found.score[0] == pytest.approx(float((given[best] / given.sum()).log()), abs=1e-9)


@pytest.mark.parametrize("score", ["visible", "path"])
@pytest.mark.parametrize("vary", ["order", "token"])
def test_a_beam_of_one_is_greedy_by_confidence(vary: Vary, score: Score):
    model = transformer(5)
    greedy = run("low-confidence(steps=7, block=4)", model, [[1, 2]], 7)
    found = run(f"{vary}-search(beams=1, block=4, score={score})", model, [[1, 2]], 7)
    assert texts(found) == texts(greedy)
    assert found[0].cost.forward_passes == 7


def test_equal_texts_reached_by_different_orders_are_kept_once():
    [rows] = texts(run("order-search(beams=4, score=path)", transformer(), [[1, 2, 3]]))
    assert len({tuple(row) for row in rows}) == len(rows)
