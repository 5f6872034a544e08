"""The driver: results in the canvas's order, costs by problem, identical rows computed once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch

from tests.decoders.examples import blank, run
from unmask.core import Beliefs, CacheView, Canvas, Decoder, Denoiser, Frame, Meter, Rows, Session, Wrapper, decoder
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
    canvas = blank(chain, [[1], [1], [2]], 3).rows(torch.tensor([0, 1, 0, 2, 0]))
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
    results = run("low-confidence", chain, [[0, mask, mask], [1], [2, mask], [3]], 3)
    assert [int(result.canvas.tokens[0, result.canvas.pad[0]]) for result in results] == [0, 1, 2, 3]
    assert [result.cost.forward_passes for result in results] == [2, 1, 2, 1]  # half as many steps as masks


def windows(spec: str, denoiser: Denoiser, length: int) -> list[list[int]]:
    """The columns each question leaves free to change, of the first row."""
    watched = Watched(denoiser)
    run(spec, watched, [[1]], length)
    return [cache.window[0].tolist() for _, _, cache in watched.asked if cache is not None]


def test_a_search_asks_within_its_block_and_scores_with_all_that_follows_it(chain: Denoiser):
    asked = windows("ots(beams=2, block=2, steps=4, temperature=1)", chain, 4)
    assert asked == [[1, 2], [1, 2, 3, 4], [1, 2, 3, 4], [3, 4], [3, 4], [3, 4]]


@pytest.mark.parametrize("spec", list(decoder))
def test_outside_its_window_a_row_is_what_it_was_when_it_entered(spec: str, chain: Denoiser):
    """Else a cache would keep keys of tokens that are no longer there."""
    watched = Watched(chain)
    settings = {"block": 2} if hasattr(decoder.make(spec), "block") else {}
    run(decoder.make(spec, **settings), Caching(watched), [[1]])
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
    alone = [run(spec, model, [prompt], 8)[0] for prompt in prompts]
    steps = [result.cost.forward_passes for result in alone]
    assert steps == [4, 8]
    watched = Watched(model)
    together = run(spec, watched, prompts, 8)
    assert [result.cost.forward_passes for result in together] == steps
    assert [result.cost.positions for result in together] == [result.cost.positions for result in alone]
    assert len(watched.asked) == max(steps)
    assert sum(len(canvas) for canvas, _, _ in watched.asked) == sum(steps)


def test_a_stream_merges_and_counts_like_decode(chain: Denoiser):
    spec = "ots(beams=3, block=2, temperature=0.5)"
    session = Session(decoder.make(spec), chain, blank(chain, [[1], [2]], 4))
    frames = list(session)
    decoded = run(spec, chain, [[1], [2]], 4)
    assert [result.cost.computed for result in session.results()] == [result.cost.computed for result in decoded]
    assert frames[-1].score.tolist() == [score for result in decoded for score in result.score]


@dataclass(frozen=True)
class Unfinished(Decoder):
    """Writes nothing."""

    frames: int

    def __call__(self, rows: Rows) -> Iterator[Frame]:
        yield from [rows.frame(1)] * self.frames

    def max_forward_passes(self, length: int) -> int:
        return 0


@pytest.mark.parametrize(("frames", "sentence"), [(0, "ended without a frame"), (1, "ended with 2 masks left")])
def test_a_decoder_that_does_not_fill_the_canvas_is_refused(frames: int, sentence: str, chain: Denoiser):
    with pytest.raises(UnmaskError, match=sentence):
        run(Unfinished(frames), chain, [[1]], 2)
