"""Laws that hold for every registered decoder, whoever registered it."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decoders.examples import LENGTH, PROMPTS, blank, exact_rows, facts, run, specs, texts
from tests.decoders.problems import Problems
from unmask.core import Denoiser, Session, decode, decoder
from unmask.errors import UnmaskError
from unmask.models.load import load
from unmask.policies.likelihood import likelihood

MODELS = ["toy-chain(letters=6)", "toy-transformer(letters=12, width=16, layers=1)"]
LOADED = {spec: load(spec).denoiser for spec in MODELS}
CHAIN = LOADED[MODELS[0]]
QUICK = {"random(temperature=0.8)", "adaptive(sure=0.5, temperature=0.8)", "search(sure=0.5, plausible=0.01)"}

every_decoder = pytest.mark.parametrize("spec", specs())
every_model = pytest.mark.parametrize("denoiser", LOADED.values(), ids=LOADED)


@every_model
@every_decoder
def test_it_fills_the_canvas_and_leaves_what_was_not_masked_alone(spec: str, denoiser: Denoiser):
    mask = denoiser.mask_id
    prompts = [[0, mask, 1, 2], [3, mask], [mask, 0, 1]]
    for prompt, rows in zip(prompts, texts(run(spec, denoiser, prompts)), strict=True):
        for row in rows:
            assert mask not in row
            assert len(row) == len(prompt) + LENGTH
            assert [t for t, g in zip(row, prompt, strict=False) if g != mask] == [g for g in prompt if g != mask]


@every_model
@every_decoder
def test_every_position_is_written_at_a_step_that_took_place(spec: str, denoiser: Denoiser):
    for result in run(spec, denoiser):
        canvas = result.canvas
        assert (canvas.order[:, canvas.start :] >= 1).all()
        assert (canvas.order[:, : canvas.start] == 0).all()
        assert (canvas.logp <= 0).all()


@every_model
@every_decoder
def test_the_same_seed_gives_the_same_answer(spec: str, denoiser: Denoiser):
    assert facts(run(spec, denoiser, seed=5)) == facts(run(spec, denoiser, seed=5))


@every_model
@every_decoder
def test_a_batch_decodes_as_its_problems_alone_whatever_their_masks(spec: str, denoiser: Denoiser):
    mask = denoiser.mask_id
    prompts = [*PROMPTS, [0, mask, 1], [mask, 3]]
    together = facts(run(spec, denoiser, prompts, seed=3))
    assert together == [facts(run(spec, denoiser, [prompt], seed=3))[0] for prompt in prompts]
    assert facts(run(spec, denoiser, prompts[::-1], seed=3))[::-1] == together


@pytest.mark.parametrize(
    "spec", [pytest.param(spec, marks=[pytest.mark.slow] * (spec not in QUICK)) for spec in specs()]
)
def test_problems_of_a_batch_have_seeds_of_their_own_and_results_that_last(spec: str):
    seeds = [3, -1, 2**60]
    session = Session(decoder.make(spec), CHAIN, blank(CHAIN), seeds)
    early = {number: decoded for _ in session for number, decoded in session.ended().items()}
    results = session.results()
    alone = [run(spec, CHAIN, [prompt], seed=seed)[0] for prompt, seed in zip(PROMPTS, seeds, strict=True)]
    assert facts(results) == facts(alone)
    for number, decoded in early.items():
        assert facts([decoded])[0][:3] == facts(results)[number][:3]


@every_model
@every_decoder
def test_scores_are_numbers_and_the_best_row_comes_first(spec: str, denoiser: Denoiser):
    for result in run(spec, denoiser):
        assert len(result.score) == len(result.canvas)
        assert all(score <= 0 for score in result.score)
        if decoder.make(spec).choice == "score":
            assert result.score == sorted(result.score, reverse=True)


@every_model
@every_decoder
def test_the_rows_asked_for_are_the_rows_announced(spec: str, denoiser: Denoiser):
    made = decoder.make(spec)
    for result in run(spec, denoiser):
        if exact_rows(made):
            assert result.cost.forward_passes == made.max_forward_passes(LENGTH)
        assert 0 < result.cost.computed <= result.cost.forward_passes <= made.max_forward_passes(LENGTH)
        assert result.cost.positions == result.cost.computed * (result.canvas.width - int(result.canvas.pad[0]))


@every_decoder
def test_the_first_step_computes_one_row_per_problem(spec: str):
    """Whatever the beams: they are still copies. A search in the first step scores its candidates besides."""
    session = Session(decoder.make(spec), CHAIN, blank(CHAIN))
    next(iter(session))
    _, distinct, _ = session.meter.counts.tolist()
    if session.meter.calls == 1:
        assert distinct == [1] * len(PROMPTS)


@every_decoder
def test_a_resolved_decoder_does_the_same_and_hides_no_default(spec: str):
    made = decoder.make(spec).resolved(LENGTH)
    assert None not in {key: value for key, value in vars(made).items() if key in ("block", "steps")}.values()
    assert made.resolved(LENGTH) == made
    assert texts(run(decoder.spec(made), CHAIN)) == texts(run(spec, CHAIN))


@every_decoder
def test_frames_count_steps_upwards_until_the_canvas_is_full(spec: str):
    frames = list(Session(decoder.make(spec), CHAIN, blank(CHAIN)))
    assert [frame.step for frame in frames] == sorted(frame.step for frame in frames)
    assert frames[-1].canvas.done
    assert all(len(frame.score) == len(frame.canvas) for frame in frames)


@every_decoder
def test_a_readers_gradient_mode_is_left_alone(spec: str):
    for _ in Session(decoder.make(spec), CHAIN, blank(CHAIN, [[1]])):
        assert not torch.is_inference_mode_enabled()


@pytest.mark.parametrize("spec", [spec for spec in specs() if (getattr(decoder.make(spec), "block", None) or 1) > 1])
def test_it_refuses_a_canvas_smaller_than_its_block(spec: str):
    block = getattr(decoder.make(spec), "block", 0)
    with pytest.raises(UnmaskError, match=f"block must be between 1 and {block - 1}"):
        run(spec, CHAIN, [[1]], length=block - 1)


@every_model
@every_decoder
def test_a_decoder_keeps_what_its_contract_claims(spec: str, denoiser: Denoiser):
    made = decoder.make(spec)
    before, announced, finished = None, set(), {}
    for frame in Session(made, denoiser, blank(denoiser), 3):
        now = frame.canvas
        if before is not None and made.commits_only:
            then = before.rows(frame.parent) if frame.parent is not None else before
            assert (then.masked | (then.tokens == now.tokens)).all()  # what was written stays
        if made.single_path:
            assert now.problem.tolist() == list(range(len(PROMPTS)))
        for problem in now.problem.unique().tolist():
            if not now.rows((now.problem == problem).nonzero()[:, 0]).masked.any():
                finished.setdefault(problem, frame.step)
        if frame.ended is not None:
            announced |= set(frame.ended.canvas.problem.tolist())
        before = now
    assert set(finished) == set(range(len(PROMPTS)))
    if made.ends_together:
        assert len(set(finished.values())) == 1
    if made.announces_ends and made.single_path:
        assert announced == {problem for problem, step in finished.items() if step < max(finished.values())}
    if not made.announces_ends:
        assert not announced


@settings(max_examples=12)
@given(st.integers(1, 5), st.integers(1, LENGTH), st.sampled_from(["block", "all-blocks", "future-masked"]))
def test_at_temperature_0_any_beams_are_greedy_low_confidence(beams: int, block: int, name: str):
    for denoiser in LOADED.values():
        searched = run(f"ots(beams={beams}, block={block}, temperature=0, likelihood={name})", denoiser)
        greedy = texts(run(f"low-confidence(block={block})", denoiser))
        assert texts(searched) == [rows * beams for rows in greedy]


@settings(max_examples=12)
@given(st.integers(1, LENGTH), st.sampled_from([0.4, 1.0]), st.integers(0, 99))
def test_a_beam_of_one_is_plain_sampling(block: int, temperature: float, seed: int):
    for denoiser in LOADED.values():
        searched = run(f"ots(beams=1, block={block}, temperature={temperature})", denoiser, seed=seed)
        sampled = run(f"low-confidence(block={block}, temperature={temperature})", denoiser, seed=seed)
        assert texts(searched) == texts(sampled)


@settings(max_examples=15)
@given(st.integers(1, 4), st.integers(1, 3), st.sampled_from([None, 1, 2]), st.integers(0, 99))
def test_with_one_block_the_three_likelihoods_agree(beams: int, samples: int, interval: int | None, seed: int):
    case = Problems("toy-joint(letters=3, sharpness=1.5)", ((0, 1), (2,)), 5, seed)
    how = {"beams": beams, "block": 5, "temperature": 1.0, "samples": samples, "interval": interval}
    block, every, future = (
        facts(decode(decoder.make("ots", likelihood=made, **how), case.denoiser, case.canvas(), seed))
        for made in map(likelihood.make, ("block", "all-blocks", "future-masked"))
    )
    assert block == every == future


def test_autoregression_is_block_1_with_one_token_per_step():
    for denoiser in LOADED.values():
        for result in run("ar(temperature=0.7)", denoiser):
            assert result.canvas.order[0, result.canvas.start :].tolist() == list(range(1, LENGTH + 1))
