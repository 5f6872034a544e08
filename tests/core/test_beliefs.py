"""Beliefs: draws of the right distribution, tail included, equal to the flat definition, in any chunks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from unmask.core import Beliefs, beliefs
from unmask.core.beliefs import GROUP, invert, masses
from unmask.errors import UnmaskError


def believe(logits: Tensor, mask_id: int) -> Beliefs:
    """Beliefs of (row, at, vocab) logits."""
    flat = logits.flatten(0, 1)
    return Beliefs(flat.__getitem__, (logits.shape[0], logits.shape[1]), logits.shape[2], mask_id, flat.device)


def random_logits(*shape: int, seed: int = 0, spread: float = 3.0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype) * spread


def flat_draw(logits: Tensor, uniform: Tensor, temperature: float) -> Tensor:
    """The definition: the first id whose cumulative mass exceeds u · total."""
    mass = (logits.double() / temperature).softmax(1).cumsum(1)
    return (mass[:, None] <= (uniform * mass[:, -1:])[:, :, None]).sum(2)


@settings(max_examples=60)
@given(
    st.integers(2, 3 * GROUP + 5),
    st.sampled_from([0.1, 0.4, 1.0, 3.0]),
    st.integers(0, 99),
    st.sampled_from([1, 8]),
    st.sampled_from([0.1, 0.999]),
)
def test_a_two_level_draw_is_the_flat_one(vocab: int, temperature: float, seed: int, spread: int, empty: float):
    made = torch.Generator().manual_seed(seed)
    logits = random_logits(6, vocab, seed=seed, spread=spread)
    without_mass = torch.rand(vocab, generator=made) < empty  # single tokens, or nearly all of them
    logits[:, without_mass.index_fill(0, torch.tensor(seed % vocab), False)] = -torch.inf
    uniform = torch.rand(6, 50, generator=made, dtype=torch.float64)
    uniform[:, :3] = torch.tensor([0.0, 0.5, 1 - 2.0**-40], dtype=torch.float64)
    assert torch.equal(invert(masses(logits, temperature), uniform), flat_draw(logits, uniform, temperature))


@pytest.mark.parametrize("vocab", [2, GROUP - 1, GROUP, GROUP + 1, 5 * GROUP])
def test_the_ends_of_the_unit_interval_give_the_first_and_last_token_with_mass(vocab: int):
    logits = random_logits(4, vocab)
    logits[:, 0] = logits[:, -1] = -torch.inf
    logits[:, vocab // 2] = 0.0
    ends = torch.tensor([[0.0, 1 - 2.0**-53]], dtype=torch.float64).expand(4, -1)
    if vocab > 2:
        assert invert(masses(logits, 1.0), ends).tolist() == [[1, vocab - 2]] * 4


@pytest.mark.parametrize("temperature", [0.4, 1.0, 1.5])
def test_draws_follow_the_tempered_softmax_tail_included(temperature: float):
    """Chi-square over every token expected at least five times; the rest of the tail is one cell."""
    places, draws, vocab = 200, 100_000, 1200
    logits = random_logits(1, 1, vocab, seed=3, spread=2.5)
    uniform = torch.rand(1, places, draws // places, generator=torch.Generator().manual_seed(11), dtype=torch.float64)
    token, _ = believe(logits.expand(1, places, vocab), mask_id=7).draw(uniform, temperature)
    counts = torch.bincount(token.flatten(), minlength=vocab).double()
    logits[0, 0, 7] = -torch.inf
    expected = (logits[0, 0] / temperature).softmax(0) * draws
    assert counts[7] == 0
    common = expected >= 5
    assert float(expected[~common].sum()) > 5
    observed = [*counts[common].tolist(), float(counts[~common].sum())]
    wanted = [*expected[common].tolist(), float(expected[~common].sum())]
    assert stats.chisquare(observed, wanted).pvalue > 1e-3


def test_the_far_tail_is_reached():
    """A token of probability 1e-12 is drawn by the numbers below 1e-12; a float32 uniform could not name them."""
    logits = torch.tensor([[[-27.631021115928547, 0.0, 0.0]]], dtype=torch.float64)
    uniform = torch.tensor([[[0.2e-12, 0.7e-12]]], dtype=torch.float64)
    token, logp = believe(logits, mask_id=2).draw(uniform, 1.0)
    assert token.flatten().tolist() == [0, 0]
    assert believe(logits, mask_id=2).draw(uniform * 2, 1.0)[0].flatten().tolist() == [0, 1]
    assert logp.flatten()[0].exp() == pytest.approx(1e-12, rel=1e-6)


def test_drawn_tokens_carry_their_untempered_log_p():
    logits = random_logits(2, 3, 40)
    uniform = torch.rand(2, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    token, logp = believe(logits, mask_id=0).draw(uniform, 0.3)
    logits[:, :, 0] = -torch.inf
    assert torch.allclose(logp, logits.log_softmax(2).gather(2, token))


READERS: dict[str, Callable[[Beliefs], Tensor]] = {
    "best": lambda b: b.best[0],
    "draw": lambda b: b.draw(torch.full((3, 4, 2), 0.3, dtype=torch.float64), 0.8)[0],
    "logp": lambda b: b.logp(torch.ones(3, 4, dtype=torch.long)),
    "margin": lambda b: b.margin,
    "entropy": lambda b: b.entropy,
    "top": lambda b: b.top(3)[1],
}


@pytest.mark.parametrize("name", READERS)
def test_chunks_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch):
    logits = random_logits(3, 4, 50)
    whole = READERS[name](believe(logits, 5))
    monkeypatch.setattr(beliefs, "CPU_CHUNK", 130)  # two places at a time
    assert torch.equal(READERS[name](believe(logits, 5)), whole)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_logits_that_are_not_numbers_are_refused(name: str, bad: float):
    logits = random_logits(3, 4, 50)
    logits[1, 2, 6] = bad
    with pytest.raises(UnmaskError, match="logits that are not numbers"):
        READERS[name](believe(logits, 5))


def test_the_mask_is_never_a_candidate():
    logits = random_logits(3, 4, 50)
    logits[:, :, 5] = 100.0
    sure = believe(logits, 5)
    assert not (sure.best[0] == 5).any()
    assert not (sure.draw(torch.rand(3, 4, 200, dtype=torch.float64), 5.0)[0] == 5).any()
    assert torch.allclose(sure.top(49)[1].exp().sum(2), torch.ones(3, 4, dtype=torch.float64))  # renormalised


def test_half_precision_is_read_in_float32():
    logits = random_logits(1, 2, 30).bfloat16()
    assert believe(logits, 5).best[1].dtype == torch.float32
    assert torch.equal(believe(logits, 5).best[1], believe(logits.float(), 5).best[1])


def test_ties_go_to_the_lowest_id():
    logits = torch.zeros(1, 1, 9)
    assert believe(logits, 0).best[0].item() == 1
    assert believe(logits, 0).top(4)[0].flatten().tolist() == [1, 2, 3, 4]


def test_copied_rows_believe_what_their_row_does():
    logits = random_logits(3, 4, 20)
    index = torch.tensor([2, 0, 2, 1])
    assert torch.equal(believe(logits, 5).rows(index).entropy, believe(logits, 5).entropy[index])


def test_margin_and_entropy_are_those_of_the_distribution():
    logits = torch.tensor([0.7, 0.2, 0.1, 0.9]).log()[None, None]
    sight = believe(logits, 3)
    assert sight.margin.item() == pytest.approx(0.5)
    assert sight.entropy.item() == pytest.approx(float(stats.entropy([0.7, 0.2, 0.1])))
