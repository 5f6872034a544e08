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

from tests.decoders.problems import Case, paths, searches
from tests.oracle import ELSEWHERE, PLAIN, forward_of, plain_settings, plainly
from unmask.bench import reference_loops as plain
from unmask.core import Branch, Decoder, Session, decode, decoder


def near(numbers: list[float]) -> Any:
    return pytest.approx(numbers, rel=1e-9, abs=1e-9)


def test_every_decoder_has_a_plain_transcription():
    ours = [name for name in decoder if decoder.find(name).__module__.startswith("unmask.")]
    assert set(ours) <= set(PLAIN) | set(ELSEWHERE), "write it plainly too, in unmask/plain.py and tests/oracle.py"


@pytest.mark.parametrize("name", sorted(set(PLAIN) - {"order-token-search"}))
def test_a_path_is_the_published_loop(name: str):
    @settings(max_examples=25)
    @given(paths(name))
    def holds(case: Case) -> None:
        given_, made = case.problems, case.decoder
        results = decode(made, given_.denoiser, given_.canvas(), given_.seed)
        for prompt, result in zip(given_.prompts, results, strict=True):
            want = plainly(made, given_.denoiser, prompt, given_.length, given_.seed)
            pad = int(result.canvas.pad[0])
            assert result.canvas.tokens[0, pad:].tolist() == want.tokens
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


def _assert_search_is_algorithm_1(case: Case) -> None:
    given_, made = case.problems, case.decoder
    results = decode(made, given_.denoiser, given_.canvas(), given_.seed)
    for prompt, masks, result in zip(given_.prompts, given_.masks, results, strict=True):
        want = plainly(made, given_.denoiser, prompt, given_.length, given_.seed)
        assert isinstance(want, plain.Search)
        assert 0 < result.cost.computed <= result.cost.forward_passes <= made.max_forward_passes(masks)
        assert result.cost.forward_passes == made.max_forward_passes(masks) or vars(made)["sure"] is not None
        pad = int(result.canvas.pad[0])
        with _unless_tied(made, want):
            assert result.canvas.tokens[:, pad:].tolist() == [beam.x.tolist() for beam in want.beams]
            assert result.score == near([beam.score for beam in want.beams])
            assert want.tokens == result.canvas.tokens[0, pad:].tolist()


@settings(max_examples=25)
@given(searches())
def test_order_token_search_is_algorithm_1(case: Case):
    _assert_search_is_algorithm_1(case)


@pytest.mark.slow
@settings(max_examples=600)
@given(searches())
def test_order_token_search_is_algorithm_1_over_a_long_sweep(case: Case):
    _assert_search_is_algorithm_1(case)


def _assert_same_candidates(branch: Branch, want: list[plain.Beam]) -> None:
    assert branch.canvas.tokens.tolist() == [beam.x.tolist() for beam in want]
    assert branch.completion.tolist() == [list(beam.full) for beam in want]
    assert (branch.parent.tolist(), branch.draw.tolist()) == ([b.parent for b in want], [b.draw for b in want])
    assert branch.score.tolist() == near([beam.score for beam in want])
    assert branch.blocks.sum(1).tolist() == near(branch.score.tolist())
    blocks = [list(beam.s) for beam in want]
    assert torch.allclose(branch.blocks, branch.blocks.new_tensor(blocks), rtol=0, atol=1e-9)


@settings(max_examples=20)
@given(searches(), st.sampled_from([1, 4]))
def test_every_candidate_of_every_branch_is_algorithm_1s(case: Case, rows_at_once: int):
    given_, made = case.problems, case.decoder
    alone = dataclasses.replace(given_, prompts=given_.prompts[:1])
    frames = list(Session(made, alone.denoiser, alone.canvas(), alone.seed))
    want = plainly(made, alone.denoiser, alone.prompts[0], alone.length, alone.seed, rows_at_once=rows_at_once)
    assert isinstance(want, plain.Search)
    branches = [frame.branch for frame in frames if frame.branch is not None]
    assert len(branches) == len(want.branches)
    with _unless_tied(made, want):
        for branch, candidates in zip(branches, want.branches, strict=True):
            _assert_same_candidates(branch, candidates)


@settings(max_examples=25)
@given(searches())
def test_the_plain_search_itself_asks_the_published_number_of_rows(case: Case):
    given_, made = case.problems, case.decoder
    asked = 0
    forward = forward_of(given_.denoiser)

    def counted(tokens: torch.Tensor) -> torch.Tensor:
        nonlocal asked
        asked += len(tokens)
        return forward(tokens)

    mask_id = given_.denoiser.mask_id
    PLAIN["order-token-search"](
        counted, given_.prompts[0], given_.length, mask_id, seed=given_.seed, **plain_settings(made)
    )
    assert asked == made.max_forward_passes(given_.masks[0]) or vars(made)["sure"] is not None
    (result,) = decode(made, given_.denoiser, given_.canvas().rows(torch.tensor([0])), given_.seed)
    assert asked == result.cost.forward_passes
