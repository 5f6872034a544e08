"""The driver: results in the canvas's order, costs by problem, identical rows computed once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import unmask.decoders  # noqa: F401  registers
from unmask.core import Beliefs, Canvas, Denoiser, Frame, Metered, decode, decoder
from unmask.core.cost import merge
from unmask.core.decode import last
from unmask.core.shapes import Columns
from unmask.errors import UnmaskError
from unmask.models.load import load


class Watched:
    """Remembers what a denoiser was asked, and what it was told to hold."""

    def __init__(self, inner: Denoiser):
        self.inner = inner
        self.mask_id, self.context, self.device, self.dtype = inner.mask_id, inner.context, inner.device, inner.dtype
        self.asked: list[tuple[Canvas, Columns]] = []
        self.held: list[tuple[Canvas, Columns]] = []

    def hold(self, canvas: Canvas, fresh: Columns) -> Denoiser:
        self.held.append((canvas, fresh))
        return self

    def __call__(self, canvas: Canvas, at: Columns) -> Beliefs:
        self.asked.append((canvas, at))
        return self.inner(canvas, at)


@pytest.fixture
def chain() -> Denoiser:
    return load("toy-chain(letters=5)").denoiser


def test_identical_rows_of_one_problem_are_computed_once_and_believed_by_all(chain: Denoiser):
    canvas = Canvas.blank([[1], [1], [2]], 3, chain.mask_id, dtype=chain.dtype).rows(torch.tensor([0, 1, 0, 2, 0]))
    watched = Watched(chain)
    meter = Metered(watched, 3)
    beliefs = meter(canvas, canvas.holes)
    assert len(watched.asked[0][0]) == 3  # equal text of another problem is its own row
    assert meter.counts.tolist() == [[3, 1, 1], [1, 1, 1], [4, 4, 4]]
    assert torch.equal(beliefs.entropy, chain(canvas, canvas.holes).entropy)


def test_rows_asked_about_different_positions_are_not_the_same():
    canvas = Canvas.blank([[1]], 3, 9).rows(torch.tensor([0, 0, 0]))
    first, copies = merge(canvas, torch.tensor([[1, 2], [2, 3], [1, 2]]))
    assert (first.tolist(), copies.tolist()) == ([0, 1], [0, 1, 0])


def test_a_held_denoiser_counts_into_the_same_meter(chain: Denoiser):
    canvas = Canvas.blank([[1], [2]], 3, chain.mask_id, dtype=chain.dtype)
    meter = Metered(chain, 2)
    held = meter.hold(canvas, canvas.holes).hold(canvas, canvas.holes)
    held(canvas, canvas.holes)
    meter(canvas, canvas.holes)
    assert meter.calls == 2
    assert meter.counts[0].tolist() == [2, 2]


def test_results_come_in_the_canvass_order_whatever_their_numbers_of_masks(chain: Denoiser):
    mask = chain.mask_id
    prompts = [[0, mask, mask], [1], [2, mask], [3]]
    canvas = Canvas.blank(prompts, 3, mask, infill=True, dtype=chain.dtype)
    results = decode(decoder.make("low-confidence"), chain, canvas)
    assert [int(result.canvas.tokens[0, result.canvas.pad[0]]) for result in results] == [0, 1, 2, 3]
    assert [result.cost.rows for result in results] == [2, 1, 2, 1]  # half as many steps as masks


def test_a_decoder_says_what_it_will_not_touch_before_each_block(chain: Denoiser):
    """What a cache may keep: everything outside `fresh`. A search scores with prefix held, the rest fresh."""
    watched = Watched(chain)
    canvas = Canvas.blank([[1]], 4, chain.mask_id, dtype=chain.dtype)
    decode(decoder.make("ots(beams=2, block=2, steps=4, temperature=1)"), watched, canvas)
    fresh = [columns[0].tolist() for _, columns in watched.held]
    assert fresh == [[1, 2], [1, 2, 3, 4], [3, 4], [3, 4]]


@pytest.mark.parametrize("spec", list(decoder))
def test_between_two_holds_only_fresh_positions_change(spec: str, chain: Denoiser):
    """Else a cache would keep keys of tokens that are no longer there."""
    told: list[tuple[Canvas, Columns]] = []

    class Strict(Watched):
        def hold(self, canvas: Canvas, fresh: Columns) -> Denoiser:
            told.append((canvas, fresh))
            held = Strict(self.inner)
            held.since = (canvas, fresh)  # type: ignore[attr-defined]
            return held

        def __call__(self, canvas: Canvas, at: Columns) -> Beliefs:
            since = getattr(self, "since", None)
            if since is not None:
                before, fresh = since
                outside = torch.ones(before.width, dtype=torch.bool).index_fill(0, fresh[0], False)
                seen = {tuple(row) for row in before.tokens[:, outside].tolist()}
                assert {tuple(row) for row in canvas.tokens[:, outside].tolist()} <= seen
            return self.inner(canvas, at)

    canvas = Canvas.blank([[1]], 6, chain.mask_id, dtype=chain.dtype)
    settings = {"block": 2} if hasattr(decoder.make(spec), "block") else {}
    decode(decoder.make(spec, **settings), Strict(chain), canvas)
    assert told


def test_a_decoder_without_frames_is_refused():
    def silent() -> Iterator[Frame]:
        yield from ()

    with pytest.raises(UnmaskError, match="the decoder ended without a frame"):
        last(silent())
