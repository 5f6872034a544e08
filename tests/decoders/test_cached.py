"""Laws of every registered decoder under a cache, eager and as a GPU runs it, with a stand-in for its graphs."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from tests.decoders.examples import LENGTH, PROMPTS, blank, facts, first_fast, run, specs, texts
from tests.models.test_cache import frozen, kept_columns
from unmask.core import Beliefs, CacheView, Canvas, Denoiser, Rows, decode, decoder
from unmask.core.cache import distinct
from unmask.models.load import load
from unmask.models.network.cuda_graphs import Graphs
from unmask.models.network.kv_cache import DualCache, Store, cached, kv_cache
from unmask.models.network.network import Network
from unmask.models.wrappers import EarlyEnd, Guided, Suppressed

KEEPS = ["prefix", "dual", "dual(refresh=2)"]
NETWORK = load("toy-transformer(letters=12, width=16, layers=2)").denoiser

every_decoder = pytest.mark.parametrize("spec", specs())
each_decoder_first = pytest.mark.parametrize("spec", first_fast())
every_cache = pytest.mark.parametrize("keep", KEEPS)


@every_cache
@each_decoder_first
def test_a_cached_run_fills_the_canvas_the_same_in_any_batch(spec: str, keep: str):
    model = cached(NETWORK, keep)
    mask = NETWORK.mask_id
    prompts = [*PROMPTS, [0, mask, 1], [mask, 5, mask, mask]]
    together = run(spec, model, prompts, seed=3)
    assert not any(mask in row for rows in texts(together) for row in rows)
    assert facts(together) == [facts(run(spec, model, [prompt], seed=3))[0] for prompt in prompts]


@every_cache
@every_decoder
def test_it_asks_the_rows_of_a_plain_run_and_computes_no_more_positions(spec: str, keep: str):
    for result in run(spec, cached(NETWORK, keep)):
        assert result.cost.forward_passes <= decoder.make(spec).max_forward_passes(LENGTH)
        assert result.cost.positions <= result.cost.computed * (result.canvas.width - int(result.canvas.pad[0]))


@every_cache
@pytest.mark.parametrize("spec", [*first_fast(), "ots(beams=4, block=6, steps=6, temperature=0.6)"])
def test_computing_copies_once_changes_nothing(spec: str, keep: str):
    model, made = cached(NETWORK, keep), decoder.make(spec)
    for seed in range(2):
        merged = decode(made, model, blank(model), seed)
        apart = decode(made, model, blank(model), seed, adapt=lambda meter, canvas: model)
        assert texts(merged) == texts(apart)
        assert [r.score for r in merged] == [r.score for r in apart]


class Frozen:
    """What a cache stands for, without one: each question is a slow forward of each row, from the definition."""

    def __init__(self, network: Network, keep: str):
        self.network = network
        cache = kv_cache.make(keep)
        assert isinstance(cache, DualCache)
        self.kind, self.refresh = kv_cache.name(cache), cache.refresh or network.context
        self.mask_id, self.context = network.mask_id, network.context
        self.device, self.dtype = network.device, network.dtype
        self.vocab, self.block_size = network.vocab, None

    def __call__(self, canvas: Canvas, at: Tensor, cache: CacheView | None = None) -> Beliefs:
        assert cache is not None
        whole = []
        for row, place in enumerate(cache.entries.tolist()):
            pad = int(canvas.pad[row])
            computed = kept_columns(canvas, row, cache.window, self.kind)
            then = cache.snapshot.tokens[place, pad:]
            whole.append(frozen(self.network.module, then, canvas.tokens[row, pad:], computed)[at[row] - pad])
        flat = torch.stack(whole).flatten(0, 1)
        return Beliefs(flat.__getitem__, (at.shape[0], at.shape[1]), flat.shape[1], self.mask_id, self.device)


@every_cache
@pytest.mark.parametrize(
    "spec",
    [
        "low-confidence(block=3, temperature=0.7)",
        "threshold(sure=0.3, block=3)",
        "adaptive(rule=factor, factor=1.5, block=3, temperature=0.7)",
        "ots(beams=3, block=3, temperature=1)",
        "ots(beams=2, block=2, temperature=1, likelihood=all-blocks)",
        "ots(beams=2, block=3, temperature=1, likelihood=interleaved(combs=2))",
        "ots(beams=2, block=3, steps=6, temperature=1, interval=2)",
        "ots(beams=2, block=3, steps=6, temperature=1, sure=0.3)",
        "ots(beams=2, block=1, temperature=1)",
        "order-search(beams=2, block=3)",
    ],
)
def test_a_cached_run_writes_what_frozen_forwards_write(spec: str, keep: str):
    network = load("toy-transformer(letters=7, width=8, layers=2, heads=2)", dtype="float64").denoiser
    assert isinstance(network, Network)
    prompts = [[0, 1, 2], [3, 7, 1, 6]]  # 7 is the mask: the second has a gap
    found = run(spec, cached(network, keep), prompts, seed=5)
    want = run(spec, Frozen(network, keep), prompts, seed=5)
    assert texts(found) == texts(want)
    assert [r.score for r in found] == [pytest.approx(r.score, abs=1e-9) for r in want]


@pytest.mark.parametrize("spec", ["low-confidence(block=3)", "threshold(sure=0.3)", "random(temperature=1)", "entropy"])
def test_a_cache_refreshed_at_every_step_is_none_to_a_single_path(spec: str):
    found, want = run(spec, cached(NETWORK, "dual(refresh=1)")), run(spec, NETWORK)
    assert texts(found) == texts(want)
    assert [r.score for r in found] == [r.score for r in want]
    assert [r.cost.positions for r in found] == [r.cost.positions for r in want]


@pytest.mark.parametrize(
    ("spec", "masks"),
    [
        ("low-confidence(block=4, steps=6)", [6, 4, 2]),
        ("ots(beams=2, block=4, steps=6, temperature=1)", [6, 4, 2]),
        ("ots(beams=2, block=6, steps=6, temperature=1, interval=3)", [6, 4, 2]),
        ("vote(n=2, inner=low-confidence(block=4, steps=6, temperature=1))", [6, 4, 2]),
        ("order-search(beams=2, block=4, score=path)", [6, 4, 2]),
        ("threshold(sure=1, block=3)", [6, 4, 3, 1]),
    ],
)
def test_a_cache_is_refreshed_every_so_many_steps(spec: str, masks: list[int], monkeypatch: pytest.MonkeyPatch):
    filled: list[int] = []
    fill = Store._fill

    def watched(self: Store, cache: CacheView) -> object:
        filled.append(int((cache.snapshot.tokens[-1] == cache.snapshot.mask_id).sum()))
        return fill(self, cache)

    def adapt(meter: Denoiser, canvas: Canvas) -> Denoiser:
        return EarlyEnd(Suppressed(Guided(meter, canvas.real & ~canvas.masked, 1.0), [3]), [4])

    monkeypatch.setattr(Store, "_fill", watched)
    model = cached(NETWORK, "prefix(refresh=2)")
    run(spec, model, PROMPTS[:1])
    assert filled == masks
    filled.clear()
    decode(decoder.make(spec), model, blank(model, PROMPTS[:1]), adapt=adapt)
    assert len(filled) >= len(masks)  # adapters pass the word on


ENDED = [[True, True], [True, False]]  # the first row ends its block of two, the second does not


def first_step(keep: str, tokens: list[list[int]], ended: list[list[bool]]) -> Rows:
    """Return copies of one row after each has written some tokens of its first block."""
    rows = Rows.start(blank(NETWORK, [[1, 2, 3]], 4), cached(NETWORK, keep)).fork(len(tokens), 0)
    rows, at = rows.advance(2)
    rows.ask(at)
    return rows.write(at, torch.tensor(tokens), torch.tensor(ended), 1, torch.zeros(len(tokens), 2))


@every_cache
def test_rows_that_share_a_place_part_when_one_begins_its_block_first(keep: str):
    """Copies rest on the same keys and values until they draw different tokens and move on at different steps."""
    tokens = [[1, 2], [3, 4]]
    together, at = first_step(keep, tokens, ENDED).advance(2)
    found = together.ask(at).best
    for row in range(2):
        alone, own = first_step(keep, tokens[row : row + 1], ENDED[row : row + 1]).advance(2)
        assert torch.equal(own, at[row : row + 1])
        for mine, theirs in zip(alone.ask(own).best, found, strict=True):
            assert torch.equal(mine, theirs[row : row + 1])


@every_cache
def test_a_row_that_advances_alone_leaves_the_place_of_those_set_aside(keep: str):
    """A place that is shared with a row outside the question is not filled with another text."""
    rows, first = first_step(keep, [[1, 2], [1, 2]], ENDED), torch.tensor([0])
    alone, own = rows.only(first).advance(2)
    alone.ask(own)
    rows, at = rows.put(first, alone).advance(2)
    assert len(set(rows.cache.entries.tolist())) == 2  # type: ignore[union-attr]
    assert rows.ask(at).best[0].shape == (2, 2)


def repeatable(run: Callable[[], Tensor]) -> tuple[Tensor, Callable[[], None]]:
    """What a graph does, on a CPU: the same run again, into the same place."""
    hidden = run()

    def replay() -> None:
        hidden.copy_(run())

    return hidden, replay


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> Network:
    """A network whose held steps go through graphs, metered as on a GPU: not every call looks for equal rows."""
    monkeypatch.setattr("unmask.core.denoiser.reads_freely", lambda device: False)
    assert isinstance(NETWORK, Network)
    made = Network(NETWORK.module, NETWORK.mask_id)
    made.graphs = Graphs(made.module, repeatable)
    return made


@pytest.mark.parametrize("keep", ["none", *KEEPS])
@each_decoder_first
def test_graphs_and_rarer_merging_change_nothing(spec: str, keep: str, replayed: Network):
    found = run(spec, cached(replayed, keep), seed=3)
    want = run(spec, cached(NETWORK, keep), seed=3)
    assert texts(found) == texts(want)
    assert [r.score for r in found] == [pytest.approx(r.score, abs=1e-4) for r in want]
    assert [r.cost.forward_passes for r in found] == [r.cost.forward_passes for r in want]


def test_equal_rows_are_sought_only_while_there_may_be_some(replayed: Network):
    with patch("unmask.core.denoiser.distinct", side_effect=distinct) as looks:
        copies = run("ots(beams=3, block=6, steps=6, temperature=0)", replayed)
        assert [result.cost.computed for result in copies] == [6 + 1] * len(PROMPTS)  # steps, and one candidate
        assert looks.call_count == 6 + 1
        looks.reset_mock()
        run("ots(beams=3, block=6, steps=6, temperature=9)", replayed)
        assert looks.call_count < 6 + 1  # the beams differ after a step or two


@pytest.mark.parametrize("keep", ["prefix", "dual(refresh=2)"])
def test_rows_are_not_changed_by_what_is_made_of_them(keep: str):
    denoiser = cached(NETWORK, keep)
    canvas = blank(denoiser, [[3, 1, 4], [1, 5, 9]], 8)
    first = Rows.start(canvas, denoiser).enter(slice(0, 4))
    at = first.slots[:, :4]
    before = first.ask(at).best[1]
    later = first.enter(slice(4, 8))
    later.ask(later.slots[:, 4:])
    assert torch.equal(first.ask(at).best[1], before)
    start, window = Rows.start(canvas, denoiser).advance(4)
    values = [start.ask(window).best[1]]
    for _ in range(3):  # a branch that advances leaves the others' entries as old as they were
        other, _ = start.advance(4)
        other.ask(window)
        values.append(start.ask(window).best[1])
    assert all(torch.equal(value, values[0]) for value in values)


def test_keys_and_values_are_loaded_once_per_block(replayed: Network):
    """And again only where other rows stand for all."""
    with patch.object(Graphs, "_load", autospec=True, side_effect=Graphs._load) as loads:
        run("ots(beams=3, block=3, steps=6, temperature=1)", cached(replayed, "dual"), [[1, 2, 3], [4, 5, 6]])
        assert loads.call_count == 2
        assert {key.rows for key in replayed.graphs.made} == {8}
        loads.reset_mock()
        run("ots(beams=12, block=6, steps=6, temperature=0)", cached(replayed, "dual"), [[1, 2, 3]])
        assert loads.call_count == 1
        assert 1 in {key.rows for key in replayed.graphs.made}  # of twelve copies
