"""Kept keys and values against a slow forward in which they are frozen, row by row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

import unmask.decoders  # noqa: F401  registers
from tests.models.folders import FAMILIES, folder_of, some_shape
from unmask.core import Beliefs, Canvas, Denoiser, Meter, Rows, decode, decoder
from unmask.errors import UnmaskError
from unmask.models.load import load, load_folder
from unmask.models.network.cuda_graphs import Graphs, Window
from unmask.models.network.kv_cache import cached
from unmask.models.network.network import Network
from unmask.models.network.transformer import Transformer

KEEPS = ["prefix", "dual"]
LENGTHS = [13, 3, 20, 7]
MASKS = 12


def network_of(path: Path, seed: int = 0, family: str = "llada") -> Network:
    denoiser = load_folder(folder_of(path / "checkpoint", family, some_shape(family, seed), seed)).denoiser
    assert isinstance(denoiser, Network)
    denoiser.shifted = False  # what the slow forward below computes
    return denoiser


def canvas_of(denoiser: Denoiser, lengths: list[int], seed: int = 0) -> Canvas:
    draw = torch.Generator().manual_seed(seed)
    prompts = [torch.randint(0, denoiser.mask_id, (length,), generator=draw).tolist() for length in lengths]
    return Canvas.blank(prompts, MASKS, denoiser.mask_id)


def scribbled(canvas: Canvas, at: Tensor, seed: int) -> Canvas:
    """Random tokens at some of the columns."""
    draw = torch.Generator().manual_seed(seed)
    token = torch.randint(0, canvas.mask_id, at.shape, generator=draw)
    where = torch.rand(at.shape, generator=draw) < 0.6
    return canvas.write(at, token, where, 1, torch.zeros(at.shape))


def logits(rows: Rows, at: Tensor, span: slice | None = None) -> Tensor:
    return _whole(rows.ask(at, span))


def uncached(network: Network, canvas: Canvas, at: Tensor) -> Tensor:
    return _whole(network(canvas, at))


def _whole(beliefs: Beliefs) -> Tensor:
    logits = beliefs.logits(torch.arange(beliefs.shape[0] * beliefs.shape[1])).unflatten(0, beliefs.shape)
    logits[..., beliefs.mask_id] = 0
    return logits


def written(rows: Rows, canvas: Canvas) -> Rows:
    return replace(rows, canvas=canvas)


def frozen(module: Transformer, then: Tensor, now: Tensor, fresh: list[int]) -> Tensor:
    """Logits of one row everywhere, its keys and values outside `fresh` being those it had `then`.

    Written from the definition: one position and one head at a time, in float64, nothing shared with the package.
    """
    shape, size = module.shape, module.shape.head_width
    theta = torch.tensor([shape.theta ** (-2 * i / size) for i in range(size // 2)], dtype=torch.float64)

    def normed(x: Tensor, weight: Tensor) -> Tensor:
        return x / (x.square().mean(-1, keepdim=True) + shape.eps).sqrt() * weight.double()

    def turned(x: Tensor, position: int) -> Tensor:
        one, two = x[: size // 2], x[size // 2 :]
        cos, sin = (position * theta).cos(), (position * theta).sin()
        return torch.cat([one * cos - two * sin, two * cos + one * sin])

    def project(layer, x: Tensor) -> tuple[list, list, list]:
        bias = 0 if layer.qkv.bias is None else layer.qkv.bias.double()
        heads = (normed(x, layer.attention_norm.weight) @ layer.qkv.weight.double().T + bias).unflatten(-1, (-1, size))
        count, kv = shape.heads, shape.kv_heads or shape.heads
        q = [[turned(row[h], p) for h in range(count)] for p, row in enumerate(heads)]
        k = [[turned(row[count + h], p) for h in range(kv)] for p, row in enumerate(heads)]
        return q, k, [[row[count + kv + h] for h in range(kv)] for row in heads]

    def through(layer, x: Tensor, q: list, k: list, v: list) -> Tensor:
        share = shape.heads // (shape.kv_heads or shape.heads)
        mixed = []
        for p in range(len(x)):
            heads = []
            for h in range(shape.heads):
                weight = torch.stack([q[p][h] @ k[j][h // share] for j in range(len(x))]) / size**0.5
                heads.append(sum(w * v[j][h // share] for j, w in enumerate(weight.softmax(0))))
            mixed.append(torch.cat(heads))
        x = x + torch.stack(mixed) @ layer.out.weight.double().T
        gate, up = (normed(x, layer.mlp_norm.weight) @ layer.gate_up.weight.double().T).chunk(2, dim=-1)
        return x + (gate * gate.sigmoid() * up) @ layer.down.weight.double().T

    old, new = module.embed.weight.double()[then], module.embed.weight.double()[now]
    for layer in module.layers:
        (q, k, v), (fresh_q, fresh_k, fresh_v) = project(layer, old), project(layer, new)
        keep = [p not in fresh for p in range(len(now))]
        mixed_k = [k[p] if kept else fresh_k[p] for p, kept in enumerate(keep)]
        mixed_v = [v[p] if kept else fresh_v[p] for p, kept in enumerate(keep)]
        old, new = through(layer, old, q, k, v), through(layer, new, fresh_q, mixed_k, mixed_v)
    return normed(new, module.norm.weight) @ module.head.weight.double().T


def kept_columns(canvas: Canvas, row: int, fresh: Tensor, keep: str) -> list[int]:
    """Fresh positions of a row alone, by the definition of each kind of cache."""
    pad = int(canvas.pad[row])
    mine = sorted({int(column) - pad for column in fresh[row]})
    return list(range(mine[0], canvas.width - pad)) if keep == "prefix" else mine


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("seed", range(4))
def test_a_cached_forward_is_a_full_one_with_frozen_keys_and_values(keep: str, seed: int, tmp_path: Path):
    network = network_of(tmp_path, seed, FAMILIES[seed % 2])
    then = canvas_of(network, LENGTHS[:3], seed)
    fresh = then.slots[:, 4:8]
    rows = Rows.start(then, cached(network, keep)).enter(slice(4, 8))
    logits(rows, fresh)
    source = torch.tensor([2, 0, 0, 1])
    now = scribbled(then.rows(source), fresh[source], seed)
    found = logits(written(rows.keep(source), now), fresh[source])
    for row, parent in enumerate(source.tolist()):
        pad = int(now.pad[row])
        computed = kept_columns(then, parent, fresh, keep)
        want = frozen(network.module, then.tokens[parent, pad:], now.tokens[row, pad:], computed)[fresh[parent] - pad]
        want[:, network.mask_id] = 0
        assert (found[row] - want).abs().max() < 1e-4


@pytest.mark.parametrize("keep", KEEPS)
def test_the_first_question_is_answered_by_the_forward_that_fills_the_cache(keep: str, tmp_path: Path):
    network = network_of(tmp_path)
    canvas = canvas_of(network, LENGTHS)
    fresh = canvas.slots[:, 3:6]
    rows = Rows.start(canvas, cached(network, keep)).enter(slice(3, 6))
    assert torch.equal(logits(rows, fresh), uncached(network, canvas, fresh))
    again = logits(rows, fresh)
    assert (again - uncached(network, canvas, fresh)).abs().max() < 1e-5  # nothing has changed yet


@pytest.mark.parametrize("keep", KEEPS)
def test_a_first_question_about_written_rows_is_answered_too(keep: str, tmp_path: Path):
    network = network_of(tmp_path)
    canvas = canvas_of(network, LENGTHS)
    fresh = canvas.slots[:, 3:6]
    now = scribbled(canvas, fresh, 1)
    late = Rows.start(canvas, cached(network, keep)).enter(slice(3, 6))
    late.ask(fresh)
    at_once = Rows.start(canvas, cached(network, keep)).enter(slice(3, 6))
    assert torch.equal(logits(written(at_once, now), fresh), logits(written(late, now), fresh))


@pytest.mark.parametrize("keep", KEEPS)
def test_where_everything_is_computed_it_is_the_plain_forward(keep: str, tmp_path: Path):
    network = network_of(tmp_path)
    canvas = Canvas.blank([[network.mask_id] * 9, [network.mask_id] * 9], MASKS, network.mask_id, infill=True)
    every = torch.arange(canvas.width).expand(2, -1)
    rows = Rows.start(canvas, cached(network, keep)).enter(slice(0, canvas.width))
    rows.ask(every)
    now = scribbled(canvas, canvas.slots, 2)
    assert (logits(written(rows, now), every) - uncached(network, now, every)).abs().max() < 1e-5


@pytest.mark.parametrize("keep", KEEPS)
def test_rows_of_any_length_are_computed_as_alone_to_the_byte(keep: str, tmp_path: Path):
    network = network_of(tmp_path)
    together = canvas_of(network, [3, 40, 17, 16, 1], seed=1)

    def second_step(canvas: Canvas) -> Tensor:
        fresh = canvas.slots[:, 4:7]
        rows = Rows.start(canvas, cached(network, keep)).enter(slice(4, 7))
        rows.ask(fresh)
        token = torch.tensor([[5, 6, 7]]).expand_as(fresh)
        return logits(rows.write(fresh, token, token < 7, 1, torch.zeros(fresh.shape)), fresh)

    found = second_step(together)
    for row, pad in enumerate(together.pad.tolist()):
        alone = Canvas.blank([together.tokens[row, pad : together.start].tolist()], MASKS, network.mask_id)
        assert torch.equal(found[row], second_step(alone)[0])


@pytest.mark.parametrize("keep", KEEPS)
def test_a_wider_question_keeps_the_prefix_and_forwards_nothing_twice(keep: str, tmp_path: Path):
    """A search scores candidates of each parent with the block and all that follows computed again."""
    network = network_of(tmp_path)
    then = canvas_of(network, LENGTHS)
    block, rest = then.slots[:, 4:8], then.slots[:, 4:]
    meter = Meter(cached(network, keep), len(then))
    rows = Rows.start(then, meter).enter(slice(4, 8))
    rows.ask(block)
    filled = meter.counts[2].tolist()
    assert filled == (then.width - then.pad).tolist()
    parent = torch.arange(len(then)).repeat_interleave(2)
    full = scribbled(scribbled(then, block, 1).rows(parent), rest[parent], 2)
    found = logits(written(rows.keep(parent), full), rest[parent], slice(4, None))
    assert meter.counts[2].tolist() == [count + 2 * rest.shape[1] for count in filled]
    for row, source in enumerate(parent.tolist()):
        pad = int(full.pad[row])
        fresh = list(range(int(rest[source, 0]) - pad, full.width - pad))
        want = frozen(network.module, then.tokens[source, pad:], full.tokens[row, pad:], fresh)[fresh]
        want[:, network.mask_id] = 0
        assert (found[row] - want).abs().max() < 1e-4


@pytest.mark.parametrize("keep", KEEPS)
def test_shifted_logits_are_read_through_the_cache_one_position_earlier(keep: str, tmp_path: Path):
    network = network_of(tmp_path, family="dream")
    shifted = Network(network.module, network.mask_id, shifted=True)
    canvas = canvas_of(network, LENGTHS)
    fresh = canvas.slots[:, 4:8]
    earlier = shifted.read_at(canvas, fresh)
    rows = Rows.start(canvas, cached(shifted, keep)).enter(slice(4, 8))
    assert torch.equal(logits(rows, fresh), uncached(network, canvas, earlier))
    now = scribbled(canvas, fresh, 1)
    by_hand = Rows.start(canvas, cached(network, keep)).enter(slice(3, 8))  # and the slot before the block
    by_hand.ask(fresh)
    assert torch.equal(logits(written(rows, now), fresh), logits(written(by_hand, now), earlier))


def repeatable(run):
    """Imitate a graph on a CPU: the same run again, into the same place."""
    hidden = run()
    return hidden, lambda: hidden.copy_(run())


def test_a_larger_room_begins_its_graphs_anew_and_the_oldest_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("unmask.models.network.cuda_graphs.MOST", 2)
    network = network_of(tmp_path)
    graphs = Graphs(network.module, repeatable)
    for rows, size in ((2, 1), (4, 1), (4, 2), (4, 3), (1, 1)):
        kv = network.module.room(rows, 8).normal_()
        columns = torch.arange(size).expand(rows, -1)
        window = Window(columns + 1, columns, columns, None)
        found = graphs(kv, torch.arange(rows), window, (rows, size)).clone()
        with torch.inference_mode():
            want = network.module(window.tokens, columns, None, kv.clone().__getitem__, columns)
        assert (found - want).abs().max() < 1e-5
    assert [(key.rows, key.window) for key in graphs.made] == [(4, 3), (1, 1)]


@pytest.mark.parametrize("keep", KEEPS)
def test_positions_are_those_really_computed(keep: str):
    denoiser = load("toy-transformer(letters=12, width=16, layers=1)").denoiser
    canvas = Canvas.blank([[1, 2, 3], [4]], 8, denoiser.mask_id)
    results = decode(decoder.make("low-confidence(block=4, steps=8)"), cached(denoiser, keep), canvas)
    for result, prompt in zip(results, (3, 1), strict=True):
        first_block = 3 * (8 if keep == "prefix" else 4)
        assert result.cost.positions == 2 * (prompt + 8) + first_block + 3 * 4
        assert (result.cost.forward_passes, result.cost.computed) == (8, 8)


def test_what_a_decoder_may_not_do_inside_a_block_is_refused(tmp_path: Path):
    network = network_of(tmp_path)
    canvas = canvas_of(network, LENGTHS)
    rows = Rows.start(canvas, cached(network, "dual")).enter(slice(0, 4))
    with pytest.raises(UnmaskError, match="asked about a column whose keys and values are cached"):
        rows.ask(canvas.slots[:, 2:6])
    outside = written(rows, scribbled(canvas, canvas.slots[:, 4:], 0))
    with pytest.raises(UnmaskError, match="position 7 was written outside the block that was entered"):
        outside.ask(canvas.slots[:, :4])


@pytest.mark.parametrize("name", ["toy-chain", "toy-joint"])
def test_a_model_without_keys_and_values_is_refused(name: str):
    with pytest.raises(UnmaskError, match="no keys and values to cache: use cache='none'"):
        cached(load(name).denoiser, "dual")
