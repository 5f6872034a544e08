"""Order-Token Search against hand-computed likelihoods, brute force and its own trace."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings

import unmask
from tests.decoders.problems import LIKELIHOODS, Case, searches
from unmask.core import Branch, Canvas, Denoiser, Session, decode, decoder
from unmask.core.schedule import Schedule
from unmask.models.load import load
from unmask.models.toy import Joint
from unmask.policies.likelihood import likelihood as make_likelihood


def marginals(table: torch.Tensor, row: list[int], mask_id: int) -> list[list[float]]:
    """p(token at each position | what is visible), by walking the whole table in Python."""
    letters = table.shape[0]
    sums = [[0.0] * letters for _ in row]
    for ids in itertools.product(range(letters), repeat=len(row)):
        if all(seen in (token, mask_id) for seen, token in zip(row, ids, strict=True)):
            for place, token in enumerate(ids):
                sums[place][token] += float(table[ids])
    return [[mass / sum(place) for mass in place] for place in sums]


def by_hand(joint: Joint, full: list[int], holes: list[list[int]], b: int, likelihood: str) -> list[float]:
    """The score of every block: what is hidden, walked over with pencil and paper."""
    block = holes[b]
    hidden = {
        "block": [holes[b]],
        "all-blocks": [[place for block in holes[: b + 1] for place in block]],
        "future-masked": [[place for block in holes[b:] for place in block]],
        "interleaved(combs=2)": [comb for comb in (block[::2], block[1::2]) if comb],
        "interleaved(combs=3)": [[place] for place in block],  # no block has more than three
        "leave-out(group=1)": [[place] for place in block],
        "leave-out(group=2)": [part for part in (block[:2], block[2:]) if part],
    }[likelihood]
    logp = dict.fromkeys(range(len(full)), 0.0)
    for dark in hidden:
        row = [joint.mask_id if place in dark else token for place, token in enumerate(full)]
        p = marginals(joint.table(len(full)), row, joint.mask_id)
        logp |= {place: math.log(p[place][full[place]]) for place in dark}
    return [sum(logp[place] for place in block) for block in holes]


def branches_of(made: str, denoiser: Denoiser, canvas: Canvas, seed: int) -> list[tuple[int, Branch]]:
    frames = Session(decoder.make(made), denoiser, canvas, seed)
    return [(frame.step, frame.branch) for frame in frames if frame.branch is not None]


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("seed", range(3))
def test_block_scores_are_the_log_likelihood_computed_by_hand(likelihood: str, seed: int):
    joint = load("toy-joint(letters=3, sharpness=1.5)").denoiser
    assert isinstance(joint, Joint)
    canvas = Canvas.blank([[1, joint.mask_id, 2]], 4, joint.mask_id, infill=True, dtype=joint.dtype)
    made = f"ots(beams=2, block=3, steps=4, interval=1, temperature=1, likelihood={likelihood})"
    holes = [[1, 3, 4], [5, 6]]
    walked = list(Schedule.plan(5, 3, 4))
    carried = [[0.0] * 2] * 2
    for step, branch in branches_of(made, joint, canvas, seed):
        b = walked[step - 1].block
        for i, full in enumerate(branch.completion.tolist()):
            want = by_hand(joint, full, holes, b, likelihood)
            slots = list(carried[int(branch.parent[i])])
            scored = range(b + 1) if likelihood == "all-blocks" else [b]
            for block in scored:
                slots[block] = want[block]
            assert branch.blocks[i].tolist() == pytest.approx(slots, abs=1e-5)
            assert float(branch.score[i]) == pytest.approx(sum(slots), abs=1e-5)
        best = sorted(range(len(branch.score)), key=lambda i: -float(branch.score[i]))[:2]
        carried = [branch.blocks[i].tolist() for i in best]


@settings(max_examples=30)
@given(searches())
def test_the_returned_row_has_the_highest_recomputed_total_of_its_traces_last_candidates(case: Case):
    given_ = case.problems
    canvas = given_.canvas().rows(torch.tensor([0]))
    (result,) = decode(case.decoder, given_.denoiser, canvas, given_.seed)
    _, branch = branches_of(decoder.spec(case.decoder), given_.denoiser, canvas, given_.seed)[-1]
    totals = [sum(blocks) for blocks in branch.blocks.tolist()]
    assert result.score[0] == pytest.approx(max(totals), abs=1e-9)
    first = max(range(len(totals)), key=lambda i: (round(totals[i], 9), -i))
    assert result.canvas.tokens[0].tolist() == branch.canvas.tokens[first].tolist()
    assert sorted(result.score) == pytest.approx(sorted(sorted(totals)[-case.settings["beams"] :]), abs=1e-9)
    assert int(branch.kept.sum()) == case.settings["beams"]


@settings(max_examples=30)
@given(searches())
def test_siblings_differ_in_at_most_the_quota_and_candidates_are_parts_of_their_completions(case: Case):
    given_ = case.problems
    canvas = given_.canvas().rows(torch.tensor([0]))
    made = case.decoder.resolved(given_.masks[0])
    walked = list(Schedule.plan(given_.masks[0], vars(made)["block"], vars(made)["steps"]))
    for step, branch in branches_of(decoder.spec(made), given_.denoiser, canvas, given_.seed):
        tokens, masked = branch.canvas.tokens, branch.canvas.masked
        assert (branch.completion[~masked] == tokens[~masked]).all()
        assert not (branch.completion == canvas.mask_id).any()
        assert ((branch.canvas.order == step).sum(1) == walked[step - 1].quota).all()
        assert branch.parent.tolist() == sorted(branch.parent.tolist())


def test_searches_are_at_every_nth_global_step_and_at_the_last_of_each_block():
    denoiser = load("toy-chain(letters=4)").denoiser
    canvas = Canvas.blank([[0]], 9, denoiser.mask_id, dtype=denoiser.dtype)
    spec = "ots(beams=2, block=5, steps=8, interval=3, temperature=1)"
    assert [step for step, _ in branches_of(spec, denoiser, canvas, 0)] == [3, 4, 6, 8]
    assert decoder.make(spec).max_forward_passes(9) == 8 * 2 + 4 * 4
    plain_ = "ots(beams=2, block=5, steps=8, temperature=1)"
    assert [step for step, _ in branches_of(plain_, denoiser, canvas, 0)] == [4, 8]


@pytest.mark.parametrize(("length", "beams", "passes"), [(256, 5, 840), (128, 5, 420), (256, 4, 640)])
def test_the_papers_costs(length: int, beams: int, passes: int):
    assert decoder.make("ots", beams=beams).max_forward_passes(length) == passes


@pytest.mark.parametrize(
    ("likelihood", "rows"),
    [
        ("interleaved(combs=2)", 32 * 4 + 2 * 2 * 16),
        ("interleaved(combs=99)", 32 * 4 + 64 * 16),
        ("leave-out(group=1)", 32 * 4 + 64 * 16),
        ("leave-out(group=5)", 32 * 4 + 2 * 7 * 16),
    ],
)
def test_a_partition_costs_a_row_per_candidate_and_part(likelihood: str, rows: int):
    assert decoder.make(f"ots(beams=4, likelihood={likelihood})").max_forward_passes(64) == rows


def test_all_parts_of_all_candidates_are_asked_in_one_call():
    denoiser = load("toy-chain(letters=4)").denoiser
    canvas = Canvas.blank([[0], [2]], 6, denoiser.mask_id, dtype=denoiser.dtype)
    spec = "ots(beams=2, block=5, steps=3, temperature=1, likelihood={})"
    calls = {name: decode(decoder.make(spec.format(name)), denoiser, canvas)[0].cost.calls for name in LIKELIHOODS}
    assert set(calls.values()) == {3 + 2}


@settings(max_examples=15)
@given(searches())
def test_partitions_into_one_part_are_the_block_likelihood(case: Case):
    results = []
    for name in ("block", "interleaved(combs=1)", "leave-out(group=9)"):
        made = decoder.make(case.decoder, likelihood=make_likelihood.make(name))
        results.append(decode(made, case.problems.denoiser, case.problems.canvas(), case.problems.seed))
    for block, combed, grouped in zip(*results, strict=True):
        assert block.canvas.tokens.tolist() == combed.canvas.tokens.tolist() == grouped.canvas.tokens.tolist()
        assert block.score == combed.score == grouped.score


def test_further_samples_keep_what_a_candidate_wrote_and_average_its_score():
    """At temperature 0 every completion is the same, so that a mean over any number of them is too."""
    denoiser = load("toy-joint(letters=3)").denoiser
    canvas = Canvas.blank([[0], [2]], 6, denoiser.mask_id, dtype=denoiser.dtype)
    one, three = (
        decode(decoder.make(f"ots(beams=2, block=3, temperature=0, samples={m})"), denoiser, canvas) for m in (1, 3)
    )
    assert [r.score for r in three] == [pytest.approx(r.score, abs=1e-12) for r in one]


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
        canvas = Canvas.blank([[1]], length, joint.mask_id, dtype=joint.dtype)
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


def test_where_the_likeliest_prefixes_lead_to_the_mode_many_beams_find_it():
    """Every prefix is drawn at this temperature, and pruning by the chain rule keeps the best."""
    joint = load("toy-joint(letters=2, sharpness=2)").denoiser
    assert isinstance(joint, Joint)
    canvas = Canvas.blank([[1]], 4, joint.mask_id, dtype=joint.dtype)
    table = joint.table(5)[1]
    mode = max(itertools.product(range(2), repeat=4), key=table.__getitem__)
    assert greedily(table) == list(mode)
    made = decoder.make("ots(beams=16, block=1, likelihood=future-masked, temperature=1000)")
    (result,) = decode(made, joint, canvas)
    assert result.canvas.tokens[0].tolist() == [1, *mode]


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
