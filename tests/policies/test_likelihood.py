"""Likelihoods made of others, free ones, random ones, and the options of the searches that use them."""

from __future__ import annotations

import math

import pytest
import torch

import unmask
from tests.oracle import CountedForward
from unmask.bench import reference_loops as plain
from unmask.core import Canvas, Decoded, decode, decoder
from unmask.models.load import load
from unmask.policies.choice import choose
from unmask.policies.likelihood import likelihood

MODEL = load("toy-transformer(letters=5, width=16, layers=1, sharpness=3)", dtype="float64").denoiser
PROMPTS = [[0, 1], [2], [3, 0, 1]]
LENGTH = 7
INNER = "random(temperature=1.0)"


def run(spec: str, seed: int = 3) -> list[Decoded]:
    canvas = Canvas.blank(PROMPTS, LENGTH, MODEL.mask_id, dtype=MODEL.dtype)
    return decode(decoder.make(spec), MODEL, canvas, seed)


def scores(judge: str) -> list[float]:
    """Of one sample of each problem, the same whatever judges it."""
    return [result.score[0] for result in run(f"best-of(n=1, inner={INNER}, likelihood={judge})")]


def test_a_sum_adds_and_nests():
    parts = ["interleaved(combs=2)", "leave-out(group=3)", "path"]
    alone = [scores(part) for part in parts]
    both = scores(f"sum(first={parts[0]}, second={parts[1]})")
    assert both == pytest.approx([a + b for a, b, _ in zip(*alone, strict=True)], abs=1e-9)
    three = scores(f"sum(first={parts[2]}, second=sum(first={parts[1]}, second={parts[0]}))")
    assert three == pytest.approx([sum(each) for each in zip(*alone, strict=True)], abs=1e-9)


def test_path_is_log_p_at_writing_and_costs_nothing():
    written = run(INNER, seed=unmask.reseed(3, 0))
    judged = run(f"best-of(n=1, inner={INNER}, likelihood=path)")
    assert [r.score for r in judged] == [pytest.approx(r.score, abs=1e-9) for r in written]
    assert [r.cost.forward_passes for r in judged] == [r.cost.forward_passes for r in written]


@pytest.mark.parametrize(("ratio", "n"), [(0.5, 3), (0.01, 2), (1, 1)])
def test_random_masks_weigh_what_they_hide_to_a_whole_text(ratio: float, n: int):
    made = likelihood.make(f"random-masks(ratio={ratio}, n={n})")
    groups = made.groups(slice(0, LENGTH))
    assert made.groups(slice(0, LENGTH)) == groups  # the same for every text
    assert made.forward_passes(slice(0, LENGTH)) == len(groups) == n
    assert all(len(set(group.slots)) == math.ceil(ratio * LENGTH) for group in groups if isinstance(group.slots, tuple))
    expected = []
    for prompt, result in zip(PROMPTS, run(INNER, seed=unmask.reseed(3, 0)), strict=True):
        text = result.canvas.tokens[0, int(result.canvas.pad[0]) :]
        total = 0.0
        for group in groups:
            assert isinstance(group.slots, tuple)
            hidden = torch.tensor(group.slots) + len(prompt)
            l = plain.logits(CountedForward(MODEL), text.index_fill(0, hidden, MODEL.mask_id)[None], MODEL.mask_id)[0]
            total += float(plain.chosen(l, text)[hidden].sum()) * LENGTH / (len(hidden) * n)
        expected.append(total)
    assert scores(f"random-masks(ratio={ratio}, n={n})") == pytest.approx(expected, abs=1e-9)


def test_ots_prunes_by_any_of_them():
    whole = "ots(beams=2, block=7, temperature=1, likelihood={})"
    for name in ("path", "random-masks(ratio=0.5, n=2)", "sum(first=interleaved(combs=2), second=block)"):
        for result in run(whole.format(name)):
            text = result.canvas.tokens[0, int(result.canvas.pad[0]) :].tolist()
            again = best_of_text(text, name) if name != "path" else result.score[0]
            assert result.score[0] == pytest.approx(again, abs=1e-9)
            assert result.cost.forward_passes <= decoder.make(whole.format(name)).max_forward_passes(LENGTH)


def best_of_text(text: list[int], name: str) -> float:
    """The likelihood of a finished text, by the groups it names."""
    x, start = torch.tensor(text), len(text) - LENGTH
    total = 0.0
    for group in likelihood.make(name).groups(slice(0, LENGTH)):
        hidden = torch.arange(start, len(text))[
            list(range(LENGTH)[group.slots] if isinstance(group.slots, slice) else group.slots)
        ]
        l = plain.logits(CountedForward(MODEL), x.index_fill(0, hidden, MODEL.mask_id)[None], MODEL.mask_id)[0]
        total += group.weight * float(plain.chosen(l, x)[hidden].sum())
    return total


def test_distinct_survivors_are_distinct_and_fewer_draws_cost_less():
    plain_ots, ours = (
        "ots(beams=4, block=4, temperature=0.5)",
        "ots(beams=4, block=4, temperature=0.5, draws=2, distinct=true)",
    )
    assert decoder.spec(decoder.make(plain_ots)) == decoder.spec(decoder.make(f"{plain_ots[:-1]}, distinct=false)"))
    assert "draws=2, distinct=true" in decoder.spec(decoder.make(ours))
    assert (
        decoder.make(ours).max_forward_passes(LENGTH)
        == 3 * 4 + 2 * 4 * 2
        < decoder.make(plain_ots).max_forward_passes(LENGTH)
    )
    copies = [
        len(rows) - len({tuple(row) for row in rows}) for rows in (r.canvas.tokens.tolist() for r in run(plain_ots))
    ]
    assert sum(copies) > 0
    for result in run(ours):
        rows = [tuple(row) for row in result.canvas.tokens.tolist()]
        assert len(set(rows)) == len(rows)
        assert result.cost.forward_passes <= decoder.make(ours).max_forward_passes(LENGTH)


@pytest.mark.parametrize("name", ["order-search", "token-search"])
def test_partial_texts_are_ranked_by_a_likelihood(name: str):
    spec = f"{name}(beams=2, block=3, likelihood=interleaved(combs=2))"
    for result in run(spec):
        text = result.canvas.tokens[0, int(result.canvas.pad[0]) :].tolist()
        assert result.score[0] == pytest.approx(best_of_text(text, "interleaved(combs=2)"), abs=1e-9)
        assert result.cost.forward_passes <= decoder.make(spec).max_forward_passes(LENGTH)


def test_a_vote_weighs_by_its_likelihood_and_temperature():
    words = f"n=6, inner={INNER}, likelihood=interleaved(combs=2)"
    cold, warm = (run(f"vote({words}, weighted=true, temperature={t})") for t in (1, 4))
    best = run(f"best-of({words})")
    for a, b, ranked in zip(cold, warm, best, strict=True):
        assert [4 * score for score in b.score] == pytest.approx(a.score, abs=1e-9)
        assert sorted(a.score) == pytest.approx(sorted(ranked.score), abs=1e-9)
    keys = ["x", "y", "y"]
    assert choose("weighted", [0.0, -1.0, -1.0], keys) == 0
    assert choose("weighted", [0.0, -0.25, -0.25], keys) == 1
