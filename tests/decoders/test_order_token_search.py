"""Order-Token Search against brute force: when it searches, what that costs, and what it finds."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings

import unmask
from tests.decoders.examples import blank, facts, run
from tests.decoders.problems import LIKELIHOODS, Case, searches
from unmask.core import Branch, Canvas, Denoiser, Session, decode, decoder
from unmask.models.load import load
from unmask.models.toy import Joint
from unmask.policies.likelihood import likelihood as make_likelihood


def branches_of(made: str, denoiser: Denoiser, canvas: Canvas, seed: int) -> list[tuple[int, Branch]]:
    frames = Session(decoder.make(made), denoiser, canvas, seed)
    return [(frame.step, frame.branch) for frame in frames if frame.branch is not None]


def test_searches_are_at_every_nth_global_step_and_at_the_last_of_each_block():
    denoiser = load("toy-chain(letters=4)").denoiser
    canvas = blank(denoiser, [[0]], 9)
    spec = "ots(beams=2, block=5, steps=8, interval=3, temperature=1)"
    assert [step for step, _ in branches_of(spec, denoiser, canvas, 0)] == [3, 4, 6, 8]
    assert decoder.make(spec).max_forward_passes(9) == 8 * 2 + 4 * 4
    plain_ = "ots(beams=2, block=5, steps=8, temperature=1)"
    assert [step for step, _ in branches_of(plain_, denoiser, canvas, 0)] == [4, 8]


@pytest.mark.parametrize(
    ("spec", "length", "passes"),
    [
        ("ots(beams=5)", 256, 840),  # the paper's
        ("ots(beams=5)", 128, 420),
        ("ots(beams=4)", 256, 640),
        ("ots(beams=4, interval=16)", 256, 128 * 4 + 8 * 16),
        ("ots(beams=4, interval=64)", 256, 128 * 4 + 2 * 16),  # beyond a block: it searches less often
        ("ots(beams=4, interval=100)", 256, 128 * 4 + 2 * 16),
        ("ots(beams=4, likelihood=interleaved(combs=2))", 64, 32 * 4 + 2 * 2 * 16),  # a row per candidate and part
        ("ots(beams=4, likelihood=interleaved(combs=99))", 64, 32 * 4 + 64 * 16),
        ("ots(beams=4, likelihood=leave-out(group=1))", 64, 32 * 4 + 64 * 16),
        ("ots(beams=4, likelihood=leave-out(group=5))", 64, 32 * 4 + 2 * 7 * 16),
    ],
)
def test_the_cost_of_a_search_is_known_before(spec: str, length: int, passes: int):
    assert decoder.make(spec).max_forward_passes(length) == passes


def test_all_parts_of_all_candidates_are_asked_in_one_call():
    denoiser = load("toy-chain(letters=4)").denoiser
    spec = "ots(beams=2, block=5, steps=3, temperature=1, likelihood={})"
    calls = {run(spec.format(name), denoiser, [[0], [2]])[0].cost.calls for name in LIKELIHOODS}
    assert calls == {3 + 2}


@settings(max_examples=15)
@given(searches())
def test_partitions_into_one_part_are_the_block_likelihood(case: Case):
    results = []
    for name in ("block", "interleaved(combs=1)", "leave-out(group=9)"):
        made = decoder.make(case.decoder, likelihood=make_likelihood.make(name))
        results.append(decode(made, case.problems.denoiser, case.problems.canvas(), case.problems.seed))
    block, combed, grouped = map(facts, results)
    assert block == combed == grouped


def greedily(table: torch.Tensor) -> list[int]:
    """The likeliest letter after the likeliest letter: what a beam of one would write."""
    ids: list[int] = []
    while table.ndim:
        ids.append(int(table.flatten(1).sum(1).argmax() if table.ndim > 1 else table.argmax()))
        table = table[ids[-1]]
    return ids


def test_future_masked_with_block_1_and_every_prefix_drawn_and_kept_finds_the_joints_mode():
    """Block 1 scores p(next | prefix), so that a total is the chain rule: log p of the whole row.

    Beams hold copies, as in Algorithm 1, and many beams over few letters hold nothing else: it is beams that are few
    beside the letters, and a high temperature, that keep many prefixes. Wherever the mode's were kept, it is found.
    """
    length, beyond_greedy = 3, 0
    for seed in range(24):
        joint = load(f"toy-joint(letters=10, seed={seed}, sharpness=2)").denoiser
        assert isinstance(joint, Joint)
        table = joint.table(1 + length)[1]
        mode = max(itertools.product(range(10), repeat=length), key=table.__getitem__)
        canvas = blank(joint, [[1]], length)
        spec = "ots(beams=5, block=1, likelihood=future-masked, temperature=3)"
        branches = branches_of(spec, joint, canvas, seed)
        kept = [branch.canvas.tokens[branch.kept, 1 : step + 1].tolist() for step, branch in branches[:-1]]
        drawn = branches[-1][1].canvas.tokens[:, 1:].tolist()
        if all(list(mode[: len(rows[0])]) in rows for rows in [*kept, drawn]):
            (result,) = decode(decoder.make(spec), joint, canvas, seed)
            assert result.canvas.tokens[0].tolist() == [1, *mode]
            assert result.score[0] == pytest.approx(math.log(float(table[mode] / table.sum())), abs=1e-9)
            beyond_greedy += greedily(table) != list(mode)
    assert beyond_greedy >= 3  # else the law would only say that greedy is sometimes right


def test_the_final_beams_may_vote():
    model = unmask.load("toy-chain")
    search = "ots(beams=5, block=2, temperature=2, answer={})"
    for seed in range(4):
        best = unmask.generate(model, "ab", decoder=search.format("score"), length=4, seed=seed)
        vote = unmask.generate(model, "ab", decoder=search.format("majority"), length=4, seed=seed)
        texts = [row.text for row in vote.hypotheses]
        assert texts == [row.text for row in best.hypotheses]
        assert best.score == max(row.score for row in best.hypotheses)
        assert vote.text == max(texts, key=texts.count)
