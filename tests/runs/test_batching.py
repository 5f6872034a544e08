"""Batches grow while that pays and fits, and never return to what did not fit."""

import pytest
import torch

from unmask.errors import UnmaskError
from unmask.runs.settings import Placement
from unmask.runs.worker import Batches, Gauge

SHAPE = ("tiny", "low-confidence", 64)


def sizes(rates: list[float], roomy: bool = True) -> list[int]:
    """Sizes asked for while each batch takes so many seconds a problem."""
    batches, seen = Batches(), []
    for rate in rates:
        seen.append(batches.size(SHAPE))
        batches.saw(SHAPE, seen[-1], seen[-1], roomy, rate * seen[-1])
    return seen


def test_batches_double_while_problems_get_quicker():
    assert sizes([1.0, 0.5, 0.25, 0.24, 0.1, 0.1]) == [4, 8, 16, 32, 32, 32]


def test_batches_stay_where_the_memory_ends():
    assert sizes([1.0, 0.5, 0.25], roomy=False) == [4, 4, 4]


def test_batches_never_return_to_what_did_not_fit():
    batches = Batches(64)
    assert batches.size(SHAPE) == 64
    batches.saw(SHAPE, 64, 16, True, 1.0)
    assert batches.size(SHAPE) == 16
    batches.saw(SHAPE, 16, 16, True, 0.1)
    assert batches.size(SHAPE) == 16
    assert batches.size(("tiny", "ots", 64)) == 64


def test_a_rest_that_is_smaller_says_nothing():
    batches = Batches()
    batches.size(SHAPE)
    batches.saw(SHAPE, 2, 2, True, 0.1)
    assert batches.size(SHAPE) == 4


def test_a_batch_of_nothing_is_refused():
    with pytest.raises(UnmaskError, match="batch=0"):
        Placement(batch=0)


def test_the_gauge_sees_memory_and_keeps_to_the_budget():
    gauge = Gauge(torch.device("cpu"), budget=10**12)
    base = gauge.begin()
    held = torch.ones(
        2**27
    )  # 512 MB: malloc may keep up to 64 MB of what was freed before, and would serve less from that
    grown = gauge.peak() - base
    del held
    assert 300e6 < grown < 900e6
    assert gauge.roomy(base, base + grown)
    assert not Gauge(torch.device("cpu"), budget=base + grown).roomy(base, base + grown)
