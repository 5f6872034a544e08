"""Every family: its forward against an independent one, its files, its place among look-alikes, its greedy loop."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import unmask.decoders  # noqa: F401  registers them
from tests.models.folders import canvas_of, folder_of, logits_at, published
from tests.models.references import LIBRARY, library_logits, llada2_logits, reference, row_logits
from unmask.bench import reference_loops as plain
from unmask.core import Canvas, decode, decoder
from unmask.errors import UnmaskError
from unmask.models.checkpoints.manifest import find_family, read_manifest
from unmask.models.checkpoints.random_weights import random_denoiser, random_shape
from unmask.models.families.family import family as families
from unmask.models.load import load_folder
from unmask.models.network.experts import Experts
from unmask.models.network.kv_cache import cached
from unmask.models.network.transformer import Shape

BLOCK = 4
NEW = sorted(set(families) - {"llada", "dream"})


def quick(names: list[str], slow: set[str]) -> list:
    """Families whose layers another one has too are tried with the slow tests."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in slow else name for name in names]


def small(family: str, **changes) -> Shape:
    shape = random_shape(family, "nano")
    block = None if shape.block is None else BLOCK
    return replace(shape, block=block, **changes)


@pytest.mark.parametrize("family", quick(sorted(LIBRARY), slow={"a2d-qwen2", "a2d-qwen3", "dream-reasoner"}))
def test_the_forward_is_the_librarys_under_the_familys_mask(family: str, tmp_path: Path):
    shape = small(family)
    folder = folder_of(tmp_path / "checkpoint", family, shape)
    assert len(list(folder.glob("*.safetensors"))) > 1
    denoiser, module = load_folder(folder).denoiser, reference(folder, family, shape)
    for lengths in ([13], [5, 17, 9]):
        canvas = canvas_of(lengths, 10, denoiser)
        at = torch.arange(canvas.width - 10 - min(lengths), canvas.width).expand(len(canvas), -1)
        wanted = library_logits(module, family, canvas, at, shape.block)
        for model in (denoiser, cached(denoiser)):
            assert (logits_at(model, canvas, at) - wanted).abs().max() < 1e-4


def test_a_mixture_with_one_head_is_olmoes(tmp_path: Path):
    shape = small("llada-moe", heads=1, width=16)
    folder = folder_of(tmp_path / "checkpoint", "llada-moe", shape)
    denoiser = load_folder(folder).denoiser
    canvas = canvas_of([9], 8, denoiser)
    at = torch.arange(canvas.width)[None]
    wanted = library_logits(reference(folder, "llada-moe", shape), "llada-moe", canvas, at, None)
    assert (logits_at(denoiser, canvas, at) - wanted).abs().max() < 1e-4


@pytest.mark.parametrize("dense", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_llada2s_forward_is_its_description(dense: int, tmp_path: Path):
    shape = small("llada2")
    assert shape.experts is not None
    shape = replace(shape, experts=replace(shape.experts, dense=dense))
    folder = folder_of(tmp_path / "checkpoint", "llada2", shape)
    denoiser, weights = load_folder(folder).denoiser, published(folder)
    canvas = canvas_of([7, 4], 4, denoiser)
    at = torch.arange(3, canvas.width).expand(2, -1)
    for model in (denoiser, cached(denoiser)):
        logits = logits_at(model, canvas, at)
        for row, pad in enumerate(canvas.pad.tolist()):
            wanted = llada2_logits(weights, shape, canvas.tokens[row, pad:])[at[row] - pad]
            wanted[:, denoiser.mask_id] = 0
            assert (logits[row] - wanted).abs().max() < 1e-4


@pytest.mark.parametrize("family", NEW)
def test_files_say_what_the_shape_is_and_who_they_belong_to(family: str, tmp_path: Path):
    kind = families.make(family)
    for shape in (random_shape(family, "nano"), random_shape(family, "full"), small(family)):
        assert kind.shape(kind.config(shape, mask=1, eos=2)) == replace(shape, kv_heads=shape.kv_heads or shape.heads)
    folder = folder_of(tmp_path / "checkpoint", family)
    manifest = read_manifest(folder)
    assert manifest.family.name == family
    assert manifest.text.tokenizer.id_to_token(manifest.mask_id) == kind.mask
    assert manifest.text.chat([{"role": "user", "content": "the"}])
    assert manifest.eos


def test_look_alikes_are_told_apart(tmp_path: Path):
    qwen = {"model_type": "Dream", "num_hidden_layers": 1}
    assert find_family({**qwen, "architectures": ["DreamForCausalLM"]}, tmp_path).name == "dream-reasoner"
    assert find_family({**qwen, "architectures": ["DreamModel"]}, tmp_path).name == "dream"
    assert find_family({**qwen, "block_size": 32}, tmp_path).name == "dream-reasoner"
    assert find_family(qwen, tmp_path).name == "dream"
    auto = {"AutoModelForCausalLM": "modeling_stable_diffcoder.StableDiffcoderForCausalLM"}
    assert find_family({"model_type": "llama", "auto_map": auto}, tmp_path).name == "stable-diffcoder"
    for causal in ({"model_type": "llama"}, {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}):
        with pytest.raises(UnmaskError, match="which no known family has"):
            find_family(causal, tmp_path)
    tiny = {"model_type": "a2d-qwen3", "architectures": ["A2DQwen3LMHeadModel"]}
    assert find_family(tiny, tmp_path).name == "a2d-qwen3"
    assert find_family({**tiny, "block_size": 16}, tmp_path).name == "a2d-qwen3-bd3lm"
    assert find_family({**tiny, "_folder": "/hub/Qwen3-0.6B-diffusion-bd3lm-v0.1"}, tmp_path).name == "a2d-qwen3-bd3lm"


def test_a_known_mask_serves_where_nobody_names_one_and_a_contradiction_is_refused(tmp_path: Path):
    folder = folder_of(tmp_path / "checkpoint", "sdar")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "mask_token_id": 5}))
    with pytest.raises(UnmaskError, match="different masks, 5 and 319"):
        read_manifest(folder)
    del config["mask_token_id"]
    (folder / "config.json").write_text(json.dumps(config))
    assert read_manifest(folder).mask_id == 319  # the tokenizer has the family's mask
    shape = replace(random_shape("illada", "nano"), vocab=155_136)
    folder = folder_of(tmp_path / "wide", "illada", shape)
    tokenizer = json.loads((folder / "tokenizer.json").read_text().replace("<[MASK]>", "<[X]>"))
    special = {**tokenizer["added_tokens"][0], "id": 5, "content": "&"}
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer, "added_tokens": [special]}))
    assert read_manifest(folder).mask_id == 5


def by_blocks(logits_of, prompt: list[int], length: int, mask: int, block: int, quota: int) -> list[int]:
    """The published greedy loop of block-causal models: block by block from position 0 on, the surest masks first."""
    x = torch.tensor([*prompt, *[mask] * length])
    for start in range(len(prompt) // block * block, len(x), block):
        here = torch.arange(start, min(start + block, len(x)))
        while len(masked := here[x[here] == mask]):
            logits = logits_of(x[: here[-1] + 1]).index_fill(1, torch.tensor(mask), -torch.inf)
            logp, token = logits[masked].log_softmax(-1).max(-1)
            best = logp.sort(descending=True, stable=True).indices[:quota]
            x[masked[best]] = token[best]
    return x.tolist()


@pytest.mark.parametrize(
    "family", quick(["sdar", "dream-reasoner", "stable-diffcoder", "a2d-qwen2-bd3lm"], slow={"dream-reasoner", "sdar"})
)
def test_greedy_decoding_is_the_published_loop(family: str, tmp_path: Path):
    shape = small(family)
    folder = folder_of(tmp_path / "checkpoint", family, shape, seed=2)
    denoiser, module = load_folder(folder).denoiser, reference(folder, family, shape)

    def logits_of(tokens: Tensor) -> Tensor:
        return row_logits(module, tokens, BLOCK)

    for prompt, quota in (([7, 8, 9, 10, 11, 12], 1), ([9] * 8, 2)):
        wanted = by_blocks(logits_of, prompt, 11, denoiser.mask_id, BLOCK, quota)
        canvas = Canvas.blank([prompt], 11, denoiser.mask_id)
        steps = 11 if quota == 1 else 6
        result = decode(decoder.make(f"low-confidence(steps={steps})"), cached(denoiser), canvas)[0]
        assert result.canvas.tokens[0].tolist() == wanted


def test_fast_dllms_blocks_begin_with_a_token_from_the_block_before(tmp_path: Path):
    """Its published loop with sub-blocks of one: each token from the logits before it, its block's others masked."""
    shape = small("fast-dllm")
    folder = folder_of(tmp_path / "checkpoint", "fast-dllm", shape, seed=1)
    denoiser, module = load_folder(folder).denoiser, reference(folder, "fast-dllm", shape)
    x = torch.tensor([7, 8, 9, 10, 11, 12, *[denoiser.mask_id] * 10])
    for place in range(6, 16):
        # The block before is enough for the first position of a block.
        end = place if place % BLOCK == 0 else place // BLOCK * BLOCK + BLOCK
        logits = row_logits(module, x[:end], BLOCK)[place - 1]
        x[place] = logits.index_fill(0, torch.tensor(denoiser.mask_id), -torch.inf).argmax()
    canvas = Canvas.blank([[7, 8, 9, 10, 11, 12]], 10, denoiser.mask_id)
    result = decode(decoder.make("left-to-right"), cached(denoiser), canvas)[0]
    assert result.canvas.tokens[0].tolist() == x.tolist()


@pytest.mark.parametrize("family", ["illada", "a2d-qwen3", "llada-moe"])
def test_greedy_decoding_under_full_attention_is_the_plain_loop(family: str, tmp_path: Path):
    shape = small(family)
    folder = folder_of(tmp_path / "checkpoint", family, shape)
    denoiser, module = load_folder(folder).denoiser, reference(folder, family, shape)

    def forward(tokens: Tensor) -> Tensor:
        return torch.stack([row_logits(module, row, None) for row in tokens])

    wanted = plain.one_path(forward, [7, 8, 9], 8, denoiser.mask_id, block=4)
    canvas = Canvas.blank([[7, 8, 9]], 8, denoiser.mask_id)
    result = decode(decoder.make("low-confidence(block=4)"), denoiser, canvas)[0]
    assert result.canvas.tokens[0].tolist() == wanted.tokens


def test_published_sizes_are_the_published_sizes():
    assert random_shape("llada", "8b").parameters == 8_015_581_184  # LLaDA-8B's own count
    assert random_shape("dream", "8b").parameters == 7_615_616_512  # Qwen2.5-7B's
    billions = {"illada": 7.62, "sdar": 8.19, "a2d-qwen3": 0.6, "stable-diffcoder": 8.25, "llada2": 16.26}
    for family, size in {**billions, "llada-moe": 7.36, "fast-dllm": 7.62}.items():
        assert round(random_shape(family, "full").parameters / 1e9, 2) == size


def test_grouped_products_are_the_loop():
    """Compute experts on a CPU as a GPU does."""
    denoiser = random_denoiser("llada2-nano")
    mixture: Any = denoiser.module.layers[1].mixture  # type: ignore[attr-defined]
    assert isinstance(mixture.experts, Experts)
    x = torch.randn(50, 32, generator=torch.Generator().manual_seed(0))
    expert = torch.randint(0, 8, (50,), generator=torch.Generator().manual_seed(1)).sort().values
    assert (mixture._grouped(x, expert) - mixture._looped(x, expert)).abs().max() < 1e-5
