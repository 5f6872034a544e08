"""Repair: the least likely positions of a finished text are written again, and kept where the text's score rises."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decoders.examples import texts
from tests.decoders.plain_loops import judged, repair
from tests.decoders.problems import LIKELIHOODS, Problems, problems
from tests.oracle import CountedForward, plain_likelihood
from unmask.core import decode, decoder
from unmask.policies.likelihood import likelihood

INNERS = ["adaptive(sure=0.4)", "random(temperature=1.0)", "ots(beams=2, temperature=1)", "order-search(beams=2)"]


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
    made, chosen, mask = decoder.make(spec), plain_likelihood(likelihood.make(name)), case.denoiser.mask_id
    before = decode(decoder.make(inner), case.denoiser, case.canvas(), case.seed)
    after = decode(made, case.denoiser, case.canvas(), case.seed)
    for prompt, masks, first, last in zip(case.prompts, case.masks, before, after, strict=True):
        text = torch.tensor(texts([first])[0][0])
        slots = (torch.tensor([*prompt, *[mask] * case.length]) == mask).nonzero()[:, 0]
        forward = CountedForward(case.denoiser)
        tokens, score = repair(forward, text, slots, mask, rounds=rounds, share=share, likelihood=chosen)
        assert texts([last]) == [[tokens]]
        assert last.score == [pytest.approx(score, rel=1e-9, abs=1e-9)]
        assert last.cost.forward_passes == first.cost.forward_passes + forward.rows <= made.max_forward_passes(masks)
        assert last.score[0] >= float(judged(forward, text, slots, chosen, mask).sum()) - 1e-9
