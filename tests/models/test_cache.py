"""Kept keys and values against a slow forward in which they are frozen, row by row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

import unmask.decoders  # noqa: F401  registers
from tests.models.folders import FAMILIES, folder_of, some_shape
from unmask.core import Canvas, Denoiser, Held, Metered, decode, decoder
from unmask.errors import UnmaskError
from unmask.models.adapters import Shifted, before
from unmask.models.cache import cached
from unmask.models.graphs import Graphs, Window
from unmask.models.load import load, load_folder
from unmask.models.network import Network
from unmask.models.transformer import Transformer

KEEPS = ["prefix", "dual"]
LENGTHS = [13, 3, 20, 7]
MASKS = 12


def network_of(path: Path, seed: int = 0, family: str = "llada") -> Network:
    denoiser = load_folder(folder_of(path / "checkpoint", family, some_shape(family, seed), seed)).denoiser
    inner = denoiser.inner if isinstance(denoiser, Shifted) else denoiser
    assert isinstance(inner, Network)
    return inner


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


def logits(denoiser: Denoiser, canvas: Canvas, at: Tensor) -> Tensor:
    found = denoiser(canvas, at).logits(torch.arange(at.numel())).unflatten(0, tuple(at.shape))
    found[..., denoiser.mask_id] = 0
    return found


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
def test_a_held_forward_is_a_full_one_with_frozen_keys_and_values(keep: str, seed: int, tmp_path: Path):
    network = network_of(tmp_path, seed, FAMILIES[seed % 2])
    then = canvas_of(network, LENGTHS[:3], seed)
    fresh = then.holes[:, 4:8]
    held = cached(network, keep).hold(then, fresh)
    logits(held, then, fresh)
    source = torch.tensor([2, 0, 0, 1])
    now = replace(scribbled(then.rows(source), fresh[source], seed), source=source)
    found = logits(held, now, fresh[source])
    for row, came in enumerate(source.tolist()):
        pad = int(now.pad[row])
        mine = kept_columns(then, came, fresh, keep)
        want = frozen(network.module, then.tokens[came, pad:], now.tokens[row, pad:], mine)[fresh[came] - pad]
        want[:, network.mask_id] = 0
        assert (found[row] - want).abs().max() < 1e-4


@pytest.mark.parametrize("keep", KEEPS)
def test_the_first_question_is_answered_by_the_forward_that_fills_the_memory(keep: str, tmp_path: Path):
    network = network_of(tmp_path)
    canvas = canvas_of(network, LENGTHS)
    fresh = canvas.holes[:, 3:6]
    held = cached(network, keep).hold(canvas, fresh)
    assert torch.equal(logits(held, canvas, fresh), logits(network, canvas, fresh))
    again = logits(held, canvas, fresh)
    assert (again - logits(network, canvas, fresh)).abs().max() < 1e-5  # nothing has changed yet


@pytest.mark.parametrize("keep", KEEPS)
def test_a_first_question_about_a_changed_canvas_is_answered_too(keep: str, tmp_path: Path):
    network = network_of(tmp_path)
    canvas = canvas_of(network, LENGTHS)
    fresh = canvas.holes[:, 3:6]
    now = scribbled(canvas, fresh, 1)
    late = cached(network, keep).hold(canvas, fresh)
    late(canvas, fresh)
    at_once = cached(network, keep).hold(canvas, fresh)
    assert torch.equal(logits(at_once, now, fresh), logits(late, now, fresh))


@pytest.mark.parametrize("keep", KEEPS)
def test_where_everything_is_fresh_it_is_the_plain_forward(keep: str, tmp_path: Path):
    network = network_of(tmp_path)
    canvas = canvas_of(network, [9, 9])
    every = torch.arange(canvas.width).expand(2, -1)
    held = cached(network, keep).hold(canvas, every)
    held(canvas, every)
    now = scribbled(canvas, canvas.holes, 2)
    assert (logits(held, now, every) - logits(network, now, every)).abs().max() < 1e-5


@pytest.mark.parametrize("keep", KEEPS)
def test_rows_of_any_length_are_computed_as_alone_to_the_byte(keep: str, tmp_path: Path):
    network = network_of(tmp_path)
    together = canvas_of(network, [3, 40, 17, 16, 1], seed=1)

    def second_step(canvas: Canvas) -> Tensor:
        fresh = canvas.holes[:, 4:7]
        held = cached(network, keep).hold(canvas, fresh)
        held(canvas, fresh)
        token = torch.tensor([[5, 6, 7]]).expand_as(fresh)
        return logits(held, canvas.write(fresh, token, token < 7, 1, torch.zeros(fresh.shape)), fresh)

    found = second_step(together)
    for row, pad in enumerate(together.pad.tolist()):
        alone = Canvas.blank([together.tokens[row, pad : together.start].tolist()], MASKS, network.mask_id)
        assert torch.equal(found[row], second_step(alone)[0])


@pytest.mark.parametrize("keep", KEEPS)
def test_what_is_held_again_keeps_the_prefix_and_forwards_nothing_twice(keep: str, tmp_path: Path):
    """As a search does: candidates of each parent are scored with the block and all that follows fresh."""
    network = network_of(tmp_path)
    then = canvas_of(network, LENGTHS)
    block, rest = then.holes[:, 4:8], then.holes[:, 4:]
    meter = Metered(cached(network, keep), len(then))
    local = Held.of(meter, then, block)
    local(then, block)
    walked = scribbled(then, block, 1)
    scored = local.hold(walked, rest)
    filled = meter.counts[2].tolist()
    assert filled == (then.width - then.pad).tolist()
    parent = torch.arange(len(then)).repeat_interleave(2)
    full = scribbled(walked.rows(parent), rest[parent], 2)
    found = logits_of(scored.rows(parent), full, rest[parent])
    assert meter.counts[2].tolist() == [count + 2 * rest.shape[1] for count in filled]
    for row, came in enumerate(parent.tolist()):
        pad = int(full.pad[row])
        fresh = list(range(int(rest[came, 0]) - pad, full.width - pad))
        want = frozen(network.module, then.tokens[came, pad:], full.tokens[row, pad:], fresh)[fresh]
        want[:, network.mask_id] = 0
        assert (found[row] - want).abs().max() < 1e-4


def logits_of(held: Held, canvas: Canvas, at: Tensor) -> Tensor:
    return logits(held.denoiser, replace(canvas, source=held.source), at)


@pytest.mark.parametrize("keep", KEEPS)
def test_dream_reads_through_the_cache_what_it_reads_one_position_earlier(keep: str, tmp_path: Path):
    network = network_of(tmp_path, family="dream")
    canvas = canvas_of(network, LENGTHS)
    fresh = canvas.holes[:, 4:8]
    held, plain = cached(Shifted(network), keep).hold(canvas, fresh), Shifted(network)
    assert torch.equal(logits(held, canvas, fresh), logits(plain, canvas, fresh))
    now = scribbled(canvas, fresh, 1)
    inner = cached(network, keep).hold(canvas, torch.cat([before(canvas, fresh)[:, :1], fresh], dim=1))
    inner(canvas, fresh)
    assert torch.equal(logits(held, now, fresh), logits(inner, now, before(canvas, fresh)))


def repeatable(run):
    """What a graph does, on a CPU: the same run again, into the same place."""
    hidden = run()
    return hidden, lambda: hidden.copy_(run())


def test_a_larger_room_begins_its_graphs_anew_and_the_oldest_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("unmask.models.graphs.MOST", 2)
    network = network_of(tmp_path)
    graphs = Graphs(network.module, repeatable)
    for rows, size in ((2, 1), (4, 1), (4, 2), (4, 3), (1, 1)):
        kv = network.module.room(rows, 8).normal_()
        columns = torch.arange(size).expand(rows, -1)
        window = Window(columns + 1, columns, columns, None)
        found = graphs(kv, torch.arange(rows), window).clone()
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
        assert (result.cost.rows, result.cost.distinct) == (8, 8)


def test_what_a_decoder_may_not_do_while_it_holds_is_said(tmp_path: Path):
    network = network_of(tmp_path)
    canvas = canvas_of(network, LENGTHS)
    held = cached(network, "dual").hold(canvas, canvas.holes[:, :4])
    with pytest.raises(UnmaskError, match="a column that is held was asked about"):
        held(canvas, canvas.holes[:, 2:6])
    with pytest.raises(UnmaskError, match=r"column 24 of row 0 was written to while it is held"):
        held(scribbled(canvas, canvas.holes[:, 4:], 0), canvas.holes[:, :4])


@pytest.mark.parametrize("name", ["toy-chain", "toy-joint"])
def test_a_model_without_keys_and_values_is_refused(name: str):
    with pytest.raises(UnmaskError, match="the model keeps no keys and values between steps: use cache='none'"):
        cached(load(name).denoiser, "dual")
