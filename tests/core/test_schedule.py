"""Blocks and quotas, also where nothing divides."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.core import Schedule
from unmask.errors import UnmaskError


@st.composite
def plans(draw: st.DrawFn) -> tuple[int, int, int]:
    length = draw(st.integers(1, 80))
    block = draw(st.integers(1, length))
    return length, block, draw(st.integers(-(-length // block), length))


@given(plans())
def test_every_step_writes_and_the_steps_of_a_block_share_its_masks(sizes: tuple[int, int, int]):
    length, block, steps = sizes
    schedule = Schedule.plan(*sizes)
    walked = list(schedule)
    assert [step.number for step in walked] == list(range(1, steps + 1))
    assert all(step.quota >= 1 for step in walked)
    for number, quotas in enumerate(schedule.quotas):
        span = schedule.span(number)
        assert sum(quotas) == span.stop - span.start == min(block, length - number * block)
        mine = [step for step in walked if step.block == number]
        assert all(step.span == span and step.size == schedule.block for step in mine)
        assert [step.last for step in mine] == [False] * (len(mine) - 1) + [True]
        opens = [step.open for step in mine]
        assert opens[0] == sum(quotas)
        assert opens[-1] == quotas[-1]
        assert [a - b for a, b in pairwise(opens)] == list(quotas[:-1])


@pytest.mark.parametrize(
    ("sizes", "quotas"),
    [
        ((8, 4, 4), ((2, 2), (2, 2))),
        ((8, 4, 5), ((2, 1, 1), (2, 2))),
        ((7, 3, 4), ((2, 1), (3,), (1,))),
        ((5, 4, 5), ((1, 1, 1, 1), (1,))),  # the last block has one mask and leaves its second step to the first
        ((13, 6, 9), ((2, 2, 1, 1), (2, 2, 1, 1), (1,))),
        ((3, 3, 2), ((2, 1),)),
    ],
)
def test_schedules_that_do_not_divide(sizes: tuple[int, int, int], quotas: tuple[tuple[int, ...], ...]):
    assert Schedule.plan(*sizes).quotas == quotas


def test_defaults_are_blocks_of_32_and_half_as_many_steps_as_masks():
    assert (Schedule.plan(128).block, Schedule.plan(128).steps) == (32, 64)
    assert (Schedule.plan(20).block, Schedule.plan(20).steps) == (20, 10)
    assert Schedule.plan(5, block=1).steps == 5
    assert Schedule.plan(5, block=2).steps == 3  # half of 5 would leave a block without a step
    assert Schedule.plan(1).steps == 1


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ((8, 0, None), "block must be between 1 and 8, the number of masks, got 0"),
        ((8, 9, None), "block must be between 1 and 8, the number of masks, got 9"),
        ((8, 4, 1), "steps must be between 2 and 8 for blocks of 4 over 8 masks, got 1"),
        ((8, 4, 9), "steps must be between 2 and 8 for blocks of 4 over 8 masks, got 9"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes: tuple[int, int | None, int | None], sentence: str):
    with pytest.raises(UnmaskError) as refusal:
        Schedule.plan(*sizes)
    assert str(refusal.value) == sentence
