"""Laws of every registered decoder under a cache, eager and as a GPU runs it, with a stand-in for its graphs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from torch import Tensor

from tests.decoders.examples import specs
from tests.decoders.test_laws import LENGTH, PROMPTS, texts
from unmask.core import Canvas, Decoded, Denoiser, decode, decoder
from unmask.models.cache import cached
from unmask.models.graphs import Graphs
from unmask.models.load import load
from unmask.models.network import Network

KEEPS = ["prefix", "dual"]
NETWORK = load("toy-transformer(letters=12, width=16, layers=2)").denoiser

every_decoder = pytest.mark.parametrize("spec", specs())
every_cache = pytest.mark.parametrize("keep", KEEPS)


def run(spec: str, denoiser: Denoiser, prompts: list[list[int]], seed: int = 0) -> list[Decoded]:
    canvas = Canvas.blank(prompts, LENGTH, denoiser.mask_id, infill=True, dtype=denoiser.dtype)
    return decode(decoder.make(spec), denoiser, canvas, seed)


@every_cache
@every_decoder
def test_a_cached_decoding_fills_the_canvas_the_same_in_any_batch(spec: str, keep: str):
    model = cached(NETWORK, keep)  # type: ignore[arg-type]
    mask = NETWORK.mask_id
    prompts = [*PROMPTS, [0, mask, 1], [mask, 5, mask, mask]]
    together = run(spec, model, prompts, seed=3)
    assert not any(mask in row for rows in texts(together) for row in rows)
    alone = [run(spec, model, [prompt], seed=3)[0] for prompt in prompts]
    assert texts(together) == texts(alone)
    assert [result.score for result in together] == [result.score for result in alone]
    counts = [(r.cost.rows, r.cost.distinct, r.cost.positions) for r in together]
    assert counts == [(r.cost.rows, r.cost.distinct, r.cost.positions) for r in alone]


@every_cache
@every_decoder
def test_it_asks_the_rows_of_a_plain_decoding_and_computes_no_more_positions(spec: str, keep: str):
    for result in run(spec, cached(NETWORK, keep), PROMPTS):  # type: ignore[arg-type]
        assert result.cost.rows <= decoder.make(spec).rows(LENGTH)
        assert result.cost.positions <= result.cost.distinct * (result.canvas.width - int(result.canvas.pad[0]))


def repeatable(run: Callable[[], Tensor]) -> tuple[Tensor, Callable[[], None]]:
    """What a graph does, on a CPU: the same run again, into the same place."""
    hidden = run()

    def replay() -> None:
        hidden.copy_(run())

    return hidden, replay


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> Network:
    """A network whose held steps go through graphs, metered as on a GPU: equal rows are looked for at searches only."""
    monkeypatch.setattr("unmask.core.cost.looks_freely", lambda device: False)
    assert isinstance(NETWORK, Network)
    made = Network(NETWORK.module, NETWORK.mask_id)
    made.graphs = Graphs(made.module, repeatable)
    return made


@every_cache
@every_decoder
def test_graphs_and_rarer_merging_change_nothing(spec: str, keep: str, replayed: Network):
    found = run(spec, cached(replayed, keep), PROMPTS, seed=3)  # type: ignore[arg-type]
    want = run(spec, cached(NETWORK, keep), PROMPTS, seed=3)  # type: ignore[arg-type]
    assert texts(found) == texts(want)
    assert [r.score for r in found] == [pytest.approx(r.score, abs=1e-4) for r in want]
    assert [r.cost.rows for r in found] == [r.cost.rows for r in want]


def test_keys_and_values_are_loaded_once_a_block(replayed: Network, monkeypatch: pytest.MonkeyPatch):
    loads: list[object] = []
    load_ = Graphs._load

    def watched(self: Graphs, *words) -> None:
        before = self.loaded
        load_(self, *words)
        if self.loaded is not before:
            loads.append(self.loaded)

    monkeypatch.setattr(Graphs, "_load", watched)
    run("ots(beams=3, block=3, steps=6, temperature=1)", cached(replayed, "dual"), [[1, 2, 3], [4, 5, 6]])
    assert len(loads) == 2
    assert {key.rows for key in replayed.graphs.made} == {8}
