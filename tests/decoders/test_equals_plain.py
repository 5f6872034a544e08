"""Every decoder writes, token for token, what the plain transcription of the published algorithms writes."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decoders.examples import texts
from tests.decoders.problems import Case, paths, searches
from tests.oracle import ELSEWHERE, PLAIN, CountedForward, plainly
from unmask.bench import reference_loops as plain
from unmask.core import Branch, Decoder, Session, decode, decoder


def near(numbers: list[float]) -> Any:
    return pytest.approx(numbers, rel=1e-9, abs=1e-9)


def test_every_decoder_has_a_plain_transcription():
    ours = [name for name in decoder if decoder.find(name).__module__.startswith("unmask.")]
    assert set(ours) <= set(PLAIN) | set(ELSEWHERE), (
        "write it plainly too, in unmask/bench/reference_loops.py or tests/decoders/plain_loops.py"
    )


@pytest.mark.parametrize("name", sorted(set(PLAIN) - {"order-token-search"}))
def test_a_path_is_the_published_loop(name: str):
    @settings(max_examples=25)
    @given(paths(name))
    def holds(case: Case) -> None:
        given_, made = case.problems, case.decoder
        results = decode(made, given_.denoiser, given_.canvas(), given_.seed)
        for prompt, result in zip(given_.prompts, results, strict=True):
            want = plainly(made, CountedForward(given_.denoiser), prompt, given_.length, given_.seed)
            assert texts([result]) == [[want.tokens]]
            assert result.score == near([want.score])

    holds()


@contextlib.contextmanager
def _unless_tied(made: Decoder, want: plain.Search) -> Iterator[None]:
    """Two means over the same completions in another order are equal but for rounding, which may then decide."""
    try:
        yield
    except AssertionError:
        scores = [sorted(candidate.score for candidate in branch) for branch in want.branches]
        tied = any(later - earlier < 1e-9 for ranked in scores for earlier, later in pairwise(ranked))
        if vars(made)["samples"] == 1 or not tied:
            raise


@pytest.mark.parametrize("examples", [25, pytest.param(600, marks=pytest.mark.slow)])
def test_order_token_search_is_algorithm_1_at_its_cost(examples: int):
    @settings(max_examples=examples)
    @given(searches())
    def holds(case: Case) -> None:
        given_, made = case.problems, case.decoder
        results = decode(made, given_.denoiser, given_.canvas(), given_.seed)
        for prompt, masks, result in zip(given_.prompts, given_.masks, results, strict=True):
            forward, cost = CountedForward(given_.denoiser), result.cost
            want = plainly(made, forward, prompt, given_.length, given_.seed)
            assert isinstance(want, plain.Search)
            assert 0 < cost.computed <= cost.forward_passes <= made.max_forward_passes(masks)
            assert cost.forward_passes == made.max_forward_passes(masks) or vars(made)["sure"] is not None
            assert cost.forward_passes == forward.rows
            with _unless_tied(made, want):
                assert texts([result]) == [[beam.x.tolist() for beam in want.beams]]
                assert result.score == near([beam.score for beam in want.beams])
                assert want.tokens == want.beams[0].x.tolist()

    holds()


def _assert_same_candidates(branch: Branch, want: list[plain.Beam]) -> None:
    assert branch.canvas.tokens.tolist() == [beam.x.tolist() for beam in want]
    assert branch.completion.tolist() == [list(beam.full) for beam in want]
    assert (branch.parent.tolist(), branch.draw.tolist()) == ([b.parent for b in want], [b.draw for b in want])
    assert branch.score.tolist() == near([beam.score for beam in want])
    assert branch.blocks.sum(1).tolist() == near(branch.score.tolist())
    blocks = [list(beam.s) for beam in want]
    assert torch.allclose(branch.blocks, branch.blocks.new_tensor(blocks), rtol=0, atol=1e-9)


@settings(max_examples=25)
@given(searches(), st.sampled_from([1, 4]))
def test_every_candidate_of_every_branch_is_algorithm_1s(case: Case, rows_at_once: int):
    given_, made = case.problems, case.decoder
    alone = dataclasses.replace(given_, prompts=given_.prompts[:1])
    frames = list(Session(made, alone.denoiser, alone.canvas(), alone.seed))
    forward = CountedForward(alone.denoiser)
    want = plainly(made, forward, alone.prompts[0], alone.length, alone.seed, rows_at_once=rows_at_once)
    assert isinstance(want, plain.Search)
    branches = [frame.branch for frame in frames if frame.branch is not None]
    assert [int(branch.kept.sum()) for branch in branches] == [vars(made)["beams"]] * len(want.branches)
    with _unless_tied(made, want):
        for branch, candidates in zip(branches, want.branches, strict=True):
            _assert_same_candidates(branch, candidates)
