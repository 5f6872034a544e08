"""The toy models are exact: any mask pattern is answered as brute force over their joint answers it."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.errors import UnmaskError
from unmask.models.load import load
from unmask.models.toy import Chain, Joint

JOINT = load("toy-joint(letters=3)").denoiser
CHAIN = load("toy-chain(letters=3)").denoiser
rows = st.lists(st.integers(0, 3), min_size=1, max_size=5)


def by_brute_force(joint: torch.Tensor, row: list[int]) -> torch.Tensor:
    sums = torch.zeros(len(row), 3, dtype=torch.float64)
    for ids in itertools.product(range(3), repeat=len(row)):
        if all(seen in (token, 3) for seen, token in zip(row, ids, strict=True)):
            sums[range(len(row)), ids] += joint[ids]
    return sums / sums.sum(1, keepdim=True)


@settings(max_examples=40)
@given(rows)
def test_a_joint_conditions_exactly(row: list[int]):
    assert isinstance(JOINT, Joint)
    assert torch.allclose(JOINT.marginals(torch.tensor(row)), by_brute_force(JOINT.table(len(row)), row))


@settings(max_examples=40)
@given(rows)
def test_a_chain_conditions_exactly(row: list[int]):
    assert isinstance(CHAIN, Chain)
    joint = torch.ones((3,) * len(row), dtype=torch.float64)
    for ids in itertools.product(range(3), repeat=len(row)):
        for left, right in itertools.pairwise(ids):
            joint[ids] *= CHAIN.move[left, right]
    assert torch.allclose(CHAIN.marginals(torch.tensor(row)), by_brute_force(joint, row))


def test_a_chain_forgets_what_lies_behind_a_visible_token_to_the_bit():
    assert isinstance(CHAIN, Chain)
    first, second = (CHAIN.marginals(torch.tensor([0, 3, 3, 1, *behind])) for behind in ([0, 2, 3], [2, 1, 0]))
    assert torch.equal(first[:4], second[:4])


def test_a_transformer_is_the_same_for_the_same_seed_and_leaves_torchs_own_randomness_alone():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    first, second = (load("toy-transformer(seed=4)").denoiser for _ in range(2))
    assert torch.equal(torch.rand(2), expected)
    assert torch.equal(first.module.head.weight, second.module.head.weight)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["toy-joint", "toy-chain", "toy-transformer"])
def test_too_few_or_too_many_letters_are_refused(name: str):
    for letters in (1, 63):
        with pytest.raises(UnmaskError, match="letters must be between 2 and 62"):
            load(f"{name}(letters={letters})")


def test_text_that_the_toy_cannot_read_is_refused():
    with pytest.raises(UnmaskError, match=r"the toy model cannot read"):
        load("toy-joint(letters=3)").text.encode("a!")
