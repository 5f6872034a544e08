"""On a GPU: replayed steps give what launched ones give, and a cache what it gives on a CPU."""

from __future__ import annotations

import pytest
import torch

import unmask.decoders  # noqa: F401  registers
from unmask.core import Canvas, decode, decoder
from unmask.models.checkpoints.random_weights import random_denoiser
from unmask.models.load import compile_layers, load
from unmask.models.network.cuda_graphs import Graphs
from unmask.models.network.experts import Experts, Mixture
from unmask.models.network.kv_cache import cached
from unmask.models.network.network import Network

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")

PROMPTS = [[3, 1, 4, 1, 5], [9, 2], [6] * 17]
SPECS = [
    "low-confidence(block=8)",
    "ots(beams=3, block=8, temperature=0.8)",
    "ots(beams=2, block=8, temperature=0.8, interval=3)",
    "ots(beams=3, block=8, temperature=0.8, sure=0.4)",
]


def network_on(device: str) -> Network:
    made = load("toy-transformer(letters=20, width=64, layers=3)", device, "float32").denoiser
    assert isinstance(made, Network)
    return made


def written(network: Network, spec: str, cache: str, prompts: list[list[int]]) -> list[list[list[int]]]:
    canvas = Canvas.blank(prompts, 16, network.mask_id, device=network.device)
    results = decode(decoder.make(spec), cached(network, cache), canvas, seed=1)  # type: ignore[arg-type]
    return [result.canvas.tokens[:, result.canvas.start :].tolist() for result in results]


@pytest.mark.parametrize("cache", ["prefix", "dual"])
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("prompts", [PROMPTS, PROMPTS[:1]])
def test_replayed_launched_and_cpu_steps_write_the_same(
    spec: str, cache: str, prompts: list[list[int]], monkeypatch: pytest.MonkeyPatch
):
    network = network_on("cuda")
    replayed = written(network, spec, cache, prompts)
    assert network.graphs.made
    assert written(network, spec, cache, prompts) == replayed  # from graphs that are there already
    monkeypatch.setattr(Graphs, "fit", lambda self, window: False)
    assert written(network, spec, cache, prompts) == replayed
    assert written(network_on("cpu"), spec, cache, prompts) == replayed


@pytest.mark.parametrize("cache", ["none", "dual"])
def test_compiled_layers_write_the_same(cache: str):
    network = network_on("cuda")
    compile_layers(network, "the toy")
    assert written(network, SPECS[1], cache, PROMPTS) == written(network_on("cuda"), SPECS[1], cache, PROMPTS)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("family", ["dream-reasoner", "fast-dllm", "sdar"])
def test_an_exact_cache_writes_what_a_cpu_without_one_writes(family: str, spec: str):
    network = random_denoiser(f"{family}-nano", "cpu")
    assert isinstance(network, Network)
    wanted = written(network, spec, "none", PROMPTS)
    network = Network(network.module.to("cuda"), network.mask_id, network.shifted)
    assert written(network, spec, "exact", PROMPTS) == wanted
    assert network.graphs.made
    assert written(network, spec, "none", PROMPTS) == wanted


def test_experts_in_groups_are_the_experts_one_by_one():
    mixture = Mixture(64, Experts(16, 4, 32, shared=32, scoring="sigmoid", bias=True, groups=4, kept_groups=2))
    for weight in mixture.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    mixture = mixture.to("cuda", torch.bfloat16).requires_grad_(False)
    x = torch.randn(300, 64, device="cuda", dtype=torch.bfloat16)
    expert = torch.randint(16, (300,), device="cuda").sort().values
    difference = (mixture._grouped(x, expert) - mixture._looped(x, expert)).abs().max()
    assert difference < 0.05 * mixture._looped(x, expert).abs().max()
