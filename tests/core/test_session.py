"""The driver: results in the canvas's order, costs by problem, identical rows computed once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import unmask.decoders  # noqa: F401  registers
from unmask.core import (
    Beliefs,
    CacheView,
    Canvas,
    Decoder,
    Denoiser,
    Frame,
    Meter,
    Rows,
    Session,
    Wrapper,
    decode,
    decoder,
)
from unmask.core.cache import distinct
from unmask.core.shapes import Columns
from unmask.errors import UnmaskError
from unmask.models.load import load


class Watched(Wrapper):
    """Remembers what a denoiser was asked."""

    def __init__(self, inner: Denoiser):
        super().__init__(inner)
        self.asked: list[tuple[Canvas, Columns, CacheView | None]] = []

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        self.asked.append((canvas, at, cache))
        return self.inner(canvas, at, cache)


@pytest.fixture
def chain() -> Denoiser:
    return load("toy-chain(letters=5)").denoiser


def test_identical_rows_of_one_problem_are_computed_once_and_believed_by_all(chain: Denoiser):
    canvas = Canvas.blank([[1], [1], [2]], 3, chain.mask_id, dtype=chain.dtype).rows(torch.tensor([0, 1, 0, 2, 0]))
    watched = Watched(chain)
    meter = Meter(watched, 3)
    beliefs = meter(canvas, canvas.slots)
    assert len(watched.asked[0][0]) == 3  # equal text of another problem is its own row
    assert meter.counts.tolist() == [[3, 1, 1], [1, 1, 1], [4, 4, 4]]
    assert torch.equal(beliefs.entropy, chain(canvas, canvas.slots).entropy)


def test_rows_asked_about_different_positions_are_not_the_same():
    canvas = Canvas.blank([[1]], 3, 9).rows(torch.tensor([0, 0, 0]))
    assert distinct(canvas, torch.tensor([[1, 2], [2, 3], [1, 2]])) == ([0, 1], [0, 1, 0])


def test_results_come_in_the_canvass_order_whatever_their_numbers_of_masks(chain: Denoiser):
    mask = chain.mask_id
    prompts = [[0, mask, mask], [1], [2, mask], [3]]
    canvas = Canvas.blank(prompts, 3, mask, infill=True, dtype=chain.dtype)
    results = decode(decoder.make("low-confidence"), chain, canvas)
    assert [int(result.canvas.tokens[0, result.canvas.pad[0]]) for result in results] == [0, 1, 2, 3]
    assert [result.cost.forward_passes for result in results] == [2, 1, 2, 1]  # half as many steps as masks


def windows(spec: str, denoiser: Denoiser, length: int) -> list[list[int]]:
    """The columns each question leaves free to change, of the first row."""
    watched = Watched(denoiser)
    decode(decoder.make(spec), watched, Canvas.blank([[1]], length, denoiser.mask_id, dtype=denoiser.dtype))
    return [cache.window[0].tolist() for _, _, cache in watched.asked if cache is not None]


def test_a_search_asks_within_its_block_and_scores_with_all_that_follows_it(chain: Denoiser):
    asked = windows("ots(beams=2, block=2, steps=4, temperature=1)", chain, 4)
    assert asked == [[1, 2], [1, 2, 3, 4], [1, 2, 3, 4], [3, 4], [3, 4], [3, 4]]


@pytest.mark.parametrize("spec", list(decoder))
def test_outside_its_window_a_row_is_what_it_was_when_it_entered(spec: str, chain: Denoiser):
    """Else a cache would keep keys of tokens that are no longer there."""
    watched = Watched(chain)
    canvas = Canvas.blank([[1]], 6, chain.mask_id, dtype=chain.dtype)
    settings = {"block": 2} if hasattr(decoder.make(spec), "block") else {}
    decode(decoder.make(spec, **settings), Caching(watched), canvas)
    cached_asks = [(now, cache) for now, _, cache in watched.asked if cache is not None]
    assert cached_asks  # a finished text may also be judged without anything kept
    for now, cache in cached_asks:
        before = cache.snapshot.tokens[cache.entries]
        changed = (now.tokens != before).scatter(1, cache.window, False)
        assert not changed.any()


class Caching(Wrapper):
    """Says that it keeps what it computed, and keeps nothing."""

    @property
    def refresh(self) -> int:
        return 99

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        return self.inner(canvas, at, cache)


def test_rows_advance_by_themselves_and_only_unfinished_ones_are_asked():
    """One problem of a batch needs a step per position, the other half as many; neither waits for the other."""
    model = load("toy-transformer(letters=5, seed=1)").denoiser
    prompts, spec = [[1], [2, 3]], "threshold(sure=0.4, block=2)"
    alone = [decode(decoder.make(spec), model, blank(model, [prompt], 8))[0] for prompt in prompts]
    steps = [result.cost.forward_passes for result in alone]
    assert steps == [4, 8]
    watched = Watched(model)
    together = decode(decoder.make(spec), watched, blank(model, prompts, 8))
    assert [result.cost.forward_passes for result in together] == steps
    assert [result.cost.positions for result in together] == [result.cost.positions for result in alone]
    assert len(watched.asked) == max(steps)
    assert sum(len(canvas) for canvas, _, _ in watched.asked) == sum(steps)


def blank(denoiser: Denoiser, prompts: list[list[int]], length: int) -> Canvas:
    return Canvas.blank(prompts, length, denoiser.mask_id, dtype=denoiser.dtype)


def test_a_stream_merges_and_counts_like_decode(chain: Denoiser):
    spec = decoder.make("ots(beams=3, block=2, temperature=0.5)")
    session = Session(spec, chain, blank(chain, [[1], [2]], 4))
    frames = list(session)
    decoded = decode(spec, chain, blank(chain, [[1], [2]], 4))
    assert [result.cost.computed for result in session.results()] == [result.cost.computed for result in decoded]
    assert frames[-1].score.tolist() == [score for result in decoded for score in result.score]


def test_a_decoder_without_frames_is_refused(chain: Denoiser):
    class Silent(Decoder):
        def __call__(self, rows: Rows) -> Iterator[Frame]:
            yield from ()

        def max_forward_passes(self, length: int) -> int:
            return 0

    with pytest.raises(UnmaskError, match="the decoder ended without a frame"):
        decode(Silent(), chain, blank(chain, [[1]], 2))


def test_a_decoder_that_leaves_masks_is_refused(chain: Denoiser):
    class Lazy(Decoder):
        def __call__(self, rows: Rows) -> Iterator[Frame]:
            yield rows.frame(1)

        def max_forward_passes(self, length: int) -> int:
            return 0

    with pytest.raises(UnmaskError, match="the decoder ended with 2 masks left: write every slot"):
        decode(Lazy(), chain, blank(chain, [[1]], 2))
