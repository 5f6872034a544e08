"""Addressed noise: the same bits wherever a number is asked for, uniform, and never shared by two live rows."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from unmask.core import Canvas, Noise, reseed

KNOWN = [0.35807531017823924, 0.6660609833032306, 0.9455088533500977, 0.5515189146041076, 0.583877783712007]
KNOWN += [0.920513671514588]
KNOWN_SEED = 7095633336391963
PROMPTS = [[1, 2, 3], [4], [5, 6], [7, 7, 7, 7], [2]]


def noise_of(prompts: list[list[int]], seed: int = 0) -> tuple[Noise, Canvas]:
    canvas = Canvas.blank(prompts, 4, mask_id=99)
    return Noise.of(canvas, seed), canvas


@given(st.permutations(range(len(PROMPTS))), st.integers(1, 5), st.integers(0, 2**40))
def test_a_rows_numbers_are_the_same_bits_in_any_batch_and_order(order: list[int], count: int, seed: int):
    every, canvas = noise_of(PROMPTS, seed)
    some, part = noise_of([PROMPTS[i] for i in order[:count]], seed)
    whole = every.uniform("token", 3, canvas.places(canvas.slots), draws=2)
    assert torch.equal(some.uniform("token", 3, part.places(part.slots), draws=2), whole[order[:count]])


def test_asking_for_fewer_places_or_draws_gives_the_same_numbers():
    noise, canvas = noise_of(PROMPTS)
    places = canvas.places(canvas.slots)
    many = noise.uniform("token", 1, places, draws=5)
    assert torch.equal(noise.uniform("token", 1, places[:, 2:], draws=3), many[:, 2:, :3])


@pytest.mark.parametrize("changed", ["seed", "prompt", "lineage", "purpose", "step", "place"])
def test_every_part_of_the_address_matters(changed: str):
    noise, _ = noise_of([[1, 2]])
    places = torch.arange(64)[None]
    first = noise.uniform("token", 1, places, draws=2)
    zero = torch.tensor([0])
    other = {
        "seed": lambda: noise_of([[1, 2]], seed=1)[0].uniform("token", 1, places, draws=2),
        "prompt": lambda: noise_of([[2, 1]])[0].uniform("token", 1, places, draws=2),
        "lineage": lambda: noise.children(zero, zero + 1, 1).uniform("token", 1, places, draws=2),
        "purpose": lambda: noise.uniform("order", 1, places, draws=2),
        "step": lambda: noise.uniform("token", 2, places, draws=2),
        "place": lambda: noise.uniform("token", 1, places + 64, draws=2),
    }[changed]()
    assert not (first == other).any()
    assert not (first[..., 0] == first[..., 1]).any()


def test_numbers_are_uniform_in_every_direction():
    noise, _ = noise_of([[i] for i in range(40)], seed=5)
    places = torch.arange(100).expand(40, -1)
    numbers = torch.stack([noise.uniform("token", step, places, draws=4) for step in range(1, 9)])
    assert float(numbers.min()) >= 0
    assert float(numbers.max()) < 1
    assert stats.kstest(numbers.flatten().numpy(), "uniform").pvalue > 1e-3
    for axis in range(numbers.ndim):  # neighbours in any part of the address know nothing of one another
        left, right = numbers.narrow(axis, 0, numbers.shape[axis] - 1), numbers.narrow(axis, 1, numbers.shape[axis] - 1)
        related = torch.corrcoef(torch.stack([left.flatten(), right.flatten()]))[0, 1]
        assert abs(float(related)) < 4 / left.numel() ** 0.5


def test_numbers_have_53_bits_and_low_ones_too():
    noise, _ = noise_of([[1]])
    words = (noise.uniform("token", 1, torch.arange(20_000)[None]).flatten() * 2.0**53).long()
    for bit in range(53):
        assert 0.48 < float(((words >> bit) & 1).double().mean()) < 0.52


def test_known_numbers_do_not_change():
    """Records name a seed; these are the numbers it has always meant."""
    noise, _ = noise_of([[1, 2, 3]], seed=7)
    zero = torch.tensor([0])
    places = torch.tensor([[3, 4]])
    child = noise.children(zero, zero + 2, 5)
    got = [noise.uniform("token", 1, places, draws=2), child.uniform("sample", 6, places)]
    assert torch.cat([part.flatten() for part in got]).tolist() == KNOWN
    assert (reseed(7, 0), reseed(7, 1)) == (7, KNOWN_SEED)


def test_the_first_child_keeps_its_parents_stream():
    noise, _ = noise_of([[1], [2]])
    children = noise.children(torch.tensor([1, 0]), torch.tensor([0, 0]), 4)
    assert torch.equal(children.lineage, noise.lineage[[1, 0]])
    assert torch.equal(children.problem, noise.problem[[1, 0]])


@given(st.integers(1, 6), st.lists(st.randoms(use_true_random=False), min_size=1, max_size=8))
def test_no_two_live_rows_ever_share_a_lineage(beams: int, prunings: list):
    noise, _ = noise_of([[1]])
    zero, draw = torch.zeros(beams, dtype=torch.long), torch.arange(beams)
    noise = noise.children(zero, draw, 0)
    for step, random in enumerate(prunings, 1):
        parent = torch.arange(beams).repeat_interleave(beams)
        candidates = noise.children(parent, torch.arange(beams).repeat(beams), step)
        assert len(candidates.lineage.unique()) == beams**2
        kept = torch.tensor(random.sample(range(beams**2), beams))
        noise = Noise(noise.seed, candidates.problem[kept], candidates.lineage[kept])
