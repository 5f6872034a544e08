"""The exact cache of block-causal models: the same bytes as without it, for every decoder, and far fewer positions."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.decoders.examples import specs
from tests.models.test_cache import repeatable
from unmask.core import Canvas, Decoded, Denoiser, Rows, Schedule, decode, decoder
from unmask.core.decoder import resolve
from unmask.errors import UnmaskError
from unmask.models.checkpoints.random_weights import random_denoiser, random_shape
from unmask.models.network.cuda_graphs import Graphs
from unmask.models.network.exact_cache import ExactlyCached
from unmask.models.network.kv_cache import cached
from unmask.models.network.network import Network
from unmask.models.network.transformer import Transformer
from unmask.models.wrappers import EarlyEnd, Guided, Suppressed

PROMPTS = [[7, 8, 9], [20] * 8, [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]]
LENGTH = 7


def network_of(family: str = "sdar", **changes) -> Network:
    torch.manual_seed(0)
    shape = replace(random_shape(family, "nano"), vocab=24, layers=1, context=256, **{"block": 4, **changes})
    module = Transformer(shape)
    for weight in module.parameters():
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=1.5 / weight.shape[-1] ** 0.5)
    return Network(module.requires_grad_(False), mask_id=23, shifted=family == "fast-dllm")


NETWORKS = {family: network_of(family) for family in ("sdar", "fast-dllm", "llada2")}


def run(spec: str, model: Denoiser, prompts: list[list[int]], length: int = LENGTH, adapt=None) -> list[Decoded]:
    canvas = Canvas.blank(prompts, length, model.mask_id, infill=True)
    return decode(decoder.make(spec), model, canvas, seed=3, adapt=adapt)


def same(first: list[Decoded], second: list[Decoded]) -> None:
    for left, right in zip(first, second, strict=True):
        width = left.canvas.width - int(left.canvas.pad[0])
        for name in ("tokens", "logp", "order"):
            assert torch.equal(getattr(left.canvas, name)[:, -width:], getattr(right.canvas, name)[:, -width:])
        assert left.score == right.score


QUICK = ["low-confidence", "order-token-search(beams=2, block=3, temperature=1, likelihood=interleaved(combs=2))"]


@pytest.mark.parametrize("spec", [*QUICK, *(pytest.param(spec, marks=pytest.mark.slow) for spec in specs())])
def test_every_decoder_writes_the_same_bytes_with_and_without_it(spec: str):
    network = NETWORKS["sdar"]
    prompts = [*PROMPTS[:2], [1, 23, 5, 23, 23, 6]]  # 23 is the mask: gaps
    plain, kept = run(spec, network, prompts), run(spec, cached(network), prompts)
    same(plain, kept)
    assert all(right.cost.positions <= left.cost.positions for left, right in zip(plain, kept, strict=True))
    assert [left.cost.forward_passes for left in plain] == [right.cost.forward_passes for right in kept]


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(NETWORKS))
@pytest.mark.parametrize("spec", ["low-confidence", "ots(beams=3, temperature=1)", "adaptive(sure=0.2)", "repair"])
def test_rows_of_a_batch_are_those_alone_and_other_families_agree(spec: str, family: str):
    network = NETWORKS[family]
    together = run(spec, cached(network), PROMPTS)
    same(together, run(spec, network, PROMPTS))
    same(together, [run(spec, cached(network), [prompt])[0] for prompt in PROMPTS])


def test_it_stands_under_guidance_suppression_and_early_end():
    def adapt(meter: Denoiser, canvas: Canvas) -> Denoiser:
        return EarlyEnd(Suppressed(Guided(meter, canvas.real & ~canvas.masked, 1.0), [3]), [4])

    network = NETWORKS["sdar"]
    spec = "ots(beams=2, temperature=1)"
    same(run(spec, network, PROMPTS[:2], adapt=adapt), run(spec, cached(network), PROMPTS[:2], adapt=adapt))


@pytest.mark.slow
@pytest.mark.parametrize("prompt", [160, 171])
def test_a_search_computes_a_fraction_of_the_positions(prompt: int):
    network = random_denoiser("dream-reasoner-nano")
    canvas = Canvas.blank([torch.arange(prompt).tolist()], 256, network.mask_id)
    search = decoder.make("ots(beams=4, temperature=1)")
    cost = decode(search, cached(network), canvas)[0].cost
    assert cost.positions <= 18_000
    assert cost.positions >= 128 * 32  # one row at least, at every step


def test_finished_blocks_are_computed_once_and_shared_by_rows_that_begin_alike():
    network = network_of()
    model = ExactlyCached(network)
    canvas = Canvas.blank([[1, 2, 3, 4, 5, 6, 7, 8]] * 3, 8, network.mask_id)
    at = torch.tensor([[8, 9]] * 3)
    first = model(canvas, at).computed
    assert first is not None
    assert first.tolist() == [8 + 4, 0, 0]  # two blocks and the one that is asked; equal rows pay nothing
    assert len(model.pages) == 2
    token = torch.tensor([[1, 2, 3, 4], [1, 2, 3, 4], [5, 6, 7, 8]])
    written = canvas.write(canvas.slots[:, :4], token, token >= 0, 1, torch.zeros(3, 4))
    second = model(written, at + 4).computed
    assert second is not None
    assert second.tolist() == [4 + 4, 0, 4 + 4]  # the block that was finished, where it differs, and the next one
    assert len(model.pages) == 4


def test_a_blank_block_is_answered_from_memory_and_memory_is_bounded():
    network = network_of()
    model = ExactlyCached(network)
    for start in range(20):
        canvas = Canvas.blank([[start] * 8], 4, network.mask_id)
        model(canvas, canvas.slots)
        again = model(canvas, canvas.slots).computed
        assert again is not None
        assert again.tolist() == [0]
    assert len(model.blank) <= 4
    assert len(model.pages) <= 8


@pytest.mark.parametrize("spec", ["ots(beams=3, temperature=1)", "adaptive(sure=0.2, temperature=1)"])
def test_graphs_change_nothing(spec: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("unmask.core.denoiser.reads_freely", lambda device: False)
    network = network_of()
    network.graphs = Graphs(network.module, repeatable)
    replayed, plain = run(spec, cached(network), PROMPTS), run(spec, NETWORKS["sdar"], PROMPTS)
    assert network.graphs.made
    for left, right in zip(replayed, plain, strict=True):
        assert torch.equal(left.canvas.tokens, right.canvas.tokens)
        assert left.score == [pytest.approx(score, abs=1e-4) for score in right.score]


def test_blocks_are_counted_from_position_0_with_the_prompts_end_in_the_first():
    network = NETWORKS["sdar"]
    rows = Rows.start(Canvas.blank([[1] * 6], 9, network.mask_id), network)
    schedule = rows.plan(4, 9)
    assert [step.span for step in schedule if step.last] == [slice(0, 2), slice(2, 6), slice(6, 9)]
    assert [rows.beyond(slice(0, stop)).stop for stop in (1, 2, 3, 6, 9)] == [2, 2, 6, 6, 9]
    _, window = rows.advance(4)
    assert sorted(set(window[0].tolist())) == [6, 7]
    assert rows.plan(20, 9).quotas == Schedule.plan(9, 9, 9).quotas  # everything in one block
    short = Rows.start(Canvas.blank([[1] * 7], 3, network.mask_id), network)
    assert [len(quotas) for quotas in short.plan(3, 3).quotas] == [1, 2]  # fewer masks than a block


def test_a_short_first_block_takes_the_steps_that_its_masks_need():
    assert Schedule.align(20, 8, None, 3).quotas == ((2, 2, 1), (2, 2, 2, 2), (2, 2, 2, 1))
    assert Schedule.align(20, 8, 20, 0).steps == 20
    assert Schedule.align(5, 8, 3, 4).quotas == ((2, 2), (1,))


def test_the_models_block_is_a_decoders_default_at_any_depth():
    chosen = decoder.make("vote(n=2, inner=low-confidence(temperature=1))")
    assert resolve(chosen, 4, 8).inner.block == 4  # type: ignore[attr-defined]
    assert resolve(chosen, 4, 3).inner.block == 3  # type: ignore[attr-defined]
    assert resolve(decoder.make("low-confidence(block=2)"), 4, 8).block == 2  # type: ignore[attr-defined]


def test_prompts_that_end_at_different_places_of_a_block_cannot_share_a_stream():
    network = NETWORKS["sdar"]
    with pytest.raises(UnmaskError, match="different places of the model's blocks of 4"):
        Rows.start(Canvas.blank([[1, 2], [1, 2, 3]], 4, network.mask_id), network)


def test_a_cache_that_a_model_does_not_have_is_refused():
    with pytest.raises(UnmaskError, match="it is block-causal: use cache='exact'"):
        cached(NETWORKS["sdar"], "dual", "it")
    with pytest.raises(UnmaskError, match="it is not block-causal, so no cache of it is exact"):
        cached(random_denoiser("illada-nano"), "exact", "it")
    assert cached(NETWORKS["sdar"], "none") is NETWORKS["sdar"]
