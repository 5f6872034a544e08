"""Random checkpoints of any shape, canvases for them, and what a model answers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from unmask.core import Canvas, Denoiser
from unmask.errors import UnmaskError
from unmask.models.checkpoints.random_weights import random_folder
from unmask.models.network.transformer import Shape

FAMILIES = ("llada", "dream")


def some_shape(family: str, seed: int) -> Shape:
    """A random shape, with or without grouped heads, tied heads and biases."""
    draw = random.Random(seed)
    heads = draw.choice([1, 2, 4, 6])
    return Shape(
        width=heads * draw.choice([4, 8, 16]),
        layers=draw.choice([1, 2, 3]),
        heads=heads,
        hidden=draw.choice([24, 40, 64]),
        vocab=draw.randint(300, 400),
        context=draw.choice([64, 100, 512]),
        kv_heads=draw.choice([number for number in (1, 2, 3, 6) if heads % number == 0]),
        theta=draw.choice([1e4, 5e5, 1e6]),
        eps=draw.choice([1e-6, 1e-5, 1e-3]),
        qkv_bias=family == "dream" or draw.random() < 0.5,
        tied=draw.random() < 0.3,
    )


def folder_of(path: Path, family: str, shape: Shape | None = None, seed: int = 0) -> Path:
    return random_folder(path, family, "nano", seed=seed, dtype=torch.float32, shape=shape)


def split_tokenizer(folder: Path) -> None:
    """Write tokenizer.json as Dream publishes it: vocab.json, merges.txt and a table of special tokens."""
    table = json.loads((folder / "tokenizer.json").read_text())
    specials = {token["id"]: token for token in table["added_tokens"]}
    words = {word: number for word, number in table["model"]["vocab"].items() if number not in specials}
    merges = "".join(f"{first} {second}\n" for first, second in table["model"]["merges"])
    (folder / "vocab.json").write_text(json.dumps(words))
    (folder / "merges.txt").write_text("#version: 0.2\n" + merges)
    change(folder / "tokenizer_config.json", tokenizer_class="DreamTokenizer", added_tokens_decoder=specials)
    (folder / "tokenizer.json").unlink()


def published(folder: Path) -> dict[str, torch.Tensor]:
    return {name: weight for file in folder.glob("*.safetensors") for name, weight in load_file(file).items()}


def canvas_of(lengths: list[int], masks: int, denoiser: Denoiser, seed: int = 0) -> Canvas:
    """Random prompts without special tokens."""
    draw = torch.Generator().manual_seed(seed)
    prompts = [torch.randint(6, 290, (length,), generator=draw).tolist() for length in lengths]
    return Canvas.blank(prompts, masks, denoiser.mask_id)


def logits_at(denoiser: Denoiser, canvas: Canvas, at: torch.Tensor) -> torch.Tensor:
    """Logits at the asked columns; that of the mask, which is never believed, is 0."""
    logits = denoiser(canvas, at).logits(torch.arange(at.numel())).unflatten(0, tuple(at.shape))
    logits[..., denoiser.mask_id] = 0
    return logits


def change(path: Path, **settings: Any) -> None:
    """Set keys of a JSON file; None removes one."""
    table = {**json.loads(path.read_text()), **settings}
    path.write_text(json.dumps({key: value for key, value in table.items() if value is not None}))


def refused(call: Callable[[], object], *words: str) -> None:
    """Check that a call raises an error of one sentence that contains these words."""
    with pytest.raises(UnmaskError) as caught:
        call()
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert len(sentence) < 700
    for word in words:
        assert word in sentence, sentence
