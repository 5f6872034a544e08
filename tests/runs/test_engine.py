"""Batches grow while that pays and fits, and never return to what did not fit."""

import torch

from unmask.runs.engine import Batches
from unmask.runs.record import Cell
from unmask.runs.settings import Decoding, Placement
from unmask.runs.worker import Done, Gauge, Job


def job(problems: int = 1, decoder: str = "low-confidence") -> Job:
    posed = tuple((str(number), ()) for number in range(problems))
    return Job(Cell("tiny", "countdown", decoder, 64), 0, 0, Decoding(), Placement(), False, posed)


def update(batches: Batches, tried: int, fitted: int, fits_double: bool = True, seconds: float = 1.0) -> None:
    batches.update(job(tried), Done((), fitted, fits_double, seconds))


def sizes(rates: list[float], fits_double: bool = True) -> list[int]:
    """The sizes asked for while each batch takes so many seconds per problem."""
    batches, seen = Batches(), []
    for rate in rates:
        seen.append(batches.size(job()))
        update(batches, seen[-1], seen[-1], fits_double, rate * seen[-1])
    return seen


def test_batches_double_while_problems_get_quicker():
    assert sizes([1.0, 0.5, 0.25, 0.24, 0.1, 0.1]) == [4, 8, 16, 32, 32, 32]


def test_batches_stay_where_the_memory_ends():
    assert sizes([1.0, 0.5, 0.25], fits_double=False) == [4, 4, 4]


def test_batches_never_return_to_what_did_not_fit():
    batches = Batches(64)
    assert batches.size(job()) == 64
    update(batches, 64, 16)
    assert batches.size(job()) == 16
    update(batches, 16, 16, seconds=0.1)
    assert batches.size(job()) == 16
    assert batches.size(job(decoder="ots")) == 64


def test_a_rest_that_is_smaller_says_nothing():
    batches = Batches()
    batches.size(job())
    update(batches, 2, 2, seconds=0.1)
    assert batches.size(job()) == 4


def test_the_gauge_sees_memory_and_keeps_to_the_budget():
    gauge = Gauge(torch.device("cpu"), budget=10**12)
    base = gauge.begin()
    held = torch.ones(
        2**27
    )  # 512 MB: malloc may keep up to 64 MB of what was freed before, and would serve less from that
    grown = gauge.peak() - base
    del held
    assert 300e6 < grown < 900e6
    assert gauge.fits_double(base, base + grown)
    assert not Gauge(torch.device("cpu"), budget=base + grown).fits_double(base, base + grown)
