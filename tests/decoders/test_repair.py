"""Repair: the least likely positions of a finished text are written again, and kept where the text's score rises."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import unmask
from tests.decoders.plain_repair import judged, repair
from tests.decoders.problems import LIKELIHOODS, Problems, problems
from tests.oracle import forward_of, plain_likelihood
from unmask.core import Decoded, Frame, decode, decoder
from unmask.errors import UnmaskError
from unmask.policies.likelihood import likelihood

INNERS = ["adaptive(sure=0.4)", "random(temperature=1.0)", "ots(beams=2, temperature=1)", "order-search(beams=2)"]


def best(results: list[Decoded]) -> list[list[int]]:
    """The tokens of every problem's first row, padding apart."""
    return [result.canvas.tokens[0, int(result.canvas.pad[0]) :].tolist() for result in results]


@settings(max_examples=25)
@given(
    problems(),
    st.sampled_from(INNERS),
    st.integers(1, 3),
    st.sampled_from([0.1, 0.25, 0.6, 1.0]),
    st.sampled_from(LIKELIHOODS),
)
def test_it_is_the_plain_loop(case: Problems, inner: str, rounds: int, share: float, name: str):
    spec = f"repair(inner={inner}, rounds={rounds}, share={share}, likelihood={name})"
    made, chosen = decoder.make(spec), plain_likelihood(likelihood.make(name))
    canvas, forward = case.canvas(), forward_of(case.denoiser)
    before = decode(decoder.make(inner), case.denoiser, canvas, case.seed)
    after = decode(made, case.denoiser, canvas, case.seed)
    for prompt, masks, text, first, last in zip(case.prompts, case.masks, best(before), before, after, strict=True):
        x = torch.tensor([*prompt, *[case.denoiser.mask_id] * case.length])
        slots = (x == case.denoiser.mask_id).nonzero()[:, 0]
        tokens, score, forwards = repair(
            forward, text, slots, case.denoiser.mask_id, rounds=rounds, share=share, likelihood=chosen
        )
        assert best([last]) == [tokens]
        assert last.score == [pytest.approx(score, rel=1e-9, abs=1e-9)]
        assert last.cost.forward_passes == first.cost.forward_passes + forwards <= made.max_forward_passes(masks)
        start = judged(forward, torch.tensor(text), slots, chosen, case.denoiser.mask_id).sum()
        assert last.score[0] >= float(start) - 1e-9


@pytest.mark.parametrize("inner", INNERS)
@pytest.mark.parametrize("seed", range(4))
def test_a_trace_replays_every_frame(inner: str, seed: int):
    model = unmask.load("toy-transformer(letters=5, width=16, layers=2, seed=1)")
    frames: list[Frame] = []
    spec = f"best-of(n=2, inner=repair(inner={inner}, rounds=3, share=0.5))"
    output = unmask.generate(
        model, "abc", decoder=spec, length=8, seed=seed, trace=True, watch=lambda _, frame: frames.append(frame)
    )
    assert output.trace is not None
    for seen, again in zip(frames, output.trace.replay(), strict=True):
        for name in ("tokens", "order", "logp"):
            assert torch.equal(getattr(seen.canvas, name), getattr(again.canvas, name))
    masks = [int(frame.canvas.masked.sum()) for frame in frames]
    assert any(later > earlier for earlier, later in pairwise(masks))  # masked again


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("repair(rounds=0)", "rounds must be at least 1, got 0"),
        ("repair(share=0)", "share must be greater than 0, got 0.0"),
        ("repair(share=nan)", "share must be"),
        ("repair(inner=vote)", "repair works on one text: write best-of(inner=repair) to repair every sample"),
        ("repair(inner=best-of)", "repair works on one text: write best-of(inner=repair) to repair every sample"),
        ("repair(likelihood=interleavd)", "unknown likelihood 'interleavd': did you mean 'interleaved'?"),
    ],
)
def test_wrong_settings_are_refused(spec: str, sentence: str):
    with pytest.raises(UnmaskError) as refusal:
        decoder.make(spec)
    assert sentence in str(refusal.value)
