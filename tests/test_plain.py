"""The oracle itself, where it can be checked by eye."""

from __future__ import annotations

import pytest
import torch

from tests.oracle import CountedForward
from unmask.bench import reference_loops as plain
from unmask.core import Schedule
from unmask.errors import UnmaskError
from unmask.models.load import load


def test_it_imports_nothing_that_it_is_the_oracle_of():
    ours = {value.__module__ for value in vars(plain).values() if hasattr(value, "__module__")}
    ours = {name for name in ours if name.startswith("unmask.")}
    assert ours == {"unmask.bench.reference_loops", "unmask.errors", "unmask.core.noise"}


def test_its_schedule_is_the_cores_for_every_size_that_fits():
    for length in range(1, 15):
        x = torch.full((length,), 9)
        for block in range(1, length + 1):
            for steps in [None, *range(-(-length // block), length + 1)]:
                mine = [(n, b, q, last) for n, b, _, q, last in plain.plan(x, 9, block, steps)]
                walked = Schedule.plan(length, block, steps)
                assert mine == [(step.number, step.block, step.quota, step.last) for step in walked]


def test_blocks_are_consecutive_entries_of_the_list_of_masks():
    x = torch.tensor([1, 9, 2, 9, 9, 3, 9, 9])
    assert [span.tolist() for span in plain.blocks(x, 9, 2)] == [[1, 3], [4, 6], [7]]


@pytest.mark.parametrize(
    ("likelihood", "hidden"),
    [
        ("block", [[4, 5, 7]]),
        ("all-blocks", [[1, 3, 4, 5, 7]]),
        ("future-masked", [[4, 5, 7, 8]]),
        (("interleaved", 2), [[4, 7], [5]]),
        (("interleaved", 3), [[4], [5], [7]]),
        (("leave-out", 1), [[4], [5], [7]]),
        (("leave-out", 2), [[4, 5], [7]]),
    ],
)
def test_what_a_likelihood_of_the_second_block_hides_per_pass(likelihood: plain.Likelihood, hidden: list[list[int]]):
    spans = [torch.tensor(span) for span in ([1, 3], [4, 5, 7], [8])]
    assert [part.tolist() for part in plain.hidden_together(spans, 1, likelihood)] == hidden


@pytest.mark.parametrize(("block", "steps"), [(0, None), (5, None), (2, 1), (2, 5)])
def test_it_refuses_sizes_that_do_not_fit(block: int, steps: int | None):
    with pytest.raises(UnmaskError, match="does not fit"):
        list(plain.plan(torch.full((4,), 9), 9, block, steps))


def test_low_confidence_by_eye():
    """Three positions; the surest first, and the mask token is no candidate however likely."""
    p = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1]])
    logits = torch.cat([p.log(), torch.full((3, 1), 5.0)], dim=1)
    seen: list[list[int]] = []

    def forward(tokens: torch.Tensor) -> torch.Tensor:
        seen.append(tokens[0].tolist())
        return torch.cat([torch.zeros(1, 4), logits])[None]

    path = plain.one_path(forward, [2], 3, mask_id=3, steps=3)
    assert seen == [[2, 3, 3, 3], [2, 3, 1, 3], [2, 0, 1, 3]]
    assert path.tokens == [2, 0, 1, 0]
    assert path.score == pytest.approx(float(torch.tensor([0.6, 0.7, 0.5]).log().sum()))


@pytest.mark.parametrize("rows_at_once", [2, 3, 100])
def test_how_many_rows_go_at_once_changes_nothing(rows_at_once: int):
    denoiser = load("toy-transformer(letters=9, width=16, layers=1)", dtype="float64").denoiser
    forward = CountedForward(denoiser)
    settings = {"beams": 3, "block": 2, "temperature": 1.0, "samples": 2}
    one = plain.order_token_search(forward, [1, 2], 5, denoiser.mask_id, **settings)
    many = plain.order_token_search(forward, [1, 2], 5, denoiser.mask_id, rows_at_once=rows_at_once, **settings)
    assert one.tokens == many.tokens
    assert [beam.score for beam in many.beams] == pytest.approx([beam.score for beam in one.beams])
