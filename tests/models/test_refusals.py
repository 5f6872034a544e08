"""A checkpoint that cannot be loaded is refused in one sentence that says what to do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file, save_file

from tests.models.folders import change, refused
from unmask.core import Canvas, decode, decoder
from unmask.errors import UnmaskError
from unmask.models.checkpoints.random_weights import random_folder
from unmask.models.checkpoints.tokenizer import read_text
from unmask.models.checkpoints.weights import INDEX, save_folder
from unmask.models.load import SETTINGS, load, load_folder, snapshot
from unmask.models.network.transformer import Shape, Transformer

TALK = [{"role": "user", "content": "a"}]


@pytest.fixture(params=("llada", "dream"))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return random_folder(tmp_path / request.param, request.param, "nano")


@pytest.fixture
def llada(tmp_path: Path) -> Path:
    return random_folder(tmp_path / "llada", "llada", "nano")


def shard(folder: Path) -> Path:
    return sorted(folder.glob("*.safetensors"))[1]


def rewrite(folder: Path, edit: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> None:
    save_file(edit(load_file(shard(folder))), shard(folder))


def drop(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)


BROKEN: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "missing shard": (lambda folder: shard(folder).unlink(), ("is missing", "download the checkpoint again")),
    "truncated shard": (
        lambda folder: shard(folder).write_bytes(shard(folder).read_bytes()[:-100]),
        ("is cut short or damaged", "download the file again"),
    ),
    "header cut": (lambda folder: shard(folder).write_bytes(b"12345"), ("is cut short or damaged",)),
    "empty shard": (lambda folder: shard(folder).write_bytes(b""), ("is cut short or damaged",)),
    "missing weight": (
        lambda folder: rewrite(folder, lambda held: {name: held[name] for name in sorted(held)[1:]}),
        ("is not in model-0000", "incomplete"),
    ),
    "unknown weight": (
        lambda folder: rewrite(folder, lambda held: {**held, "attn_out.bias": torch.zeros(32)}),
        ("weight attn_out.bias", "is not part of a"),
    ),
    "weights that are not floats": (
        lambda folder: rewrite(folder, lambda held: {name: weight.to(torch.int8) for name, weight in held.items()}),
        ("F64, F32, F16, BF16, got I8",),
    ),
    "empty index": (lambda folder: change(folder / INDEX, weight_map=None), ("has no weight_map",)),
    "misspelt family": (
        lambda folder: change(folder / "config.json", model_type="lladda"),
        ("'lladda'", "did you mean 'llada'?", "unmask.wrap"),
    ),
    "unknown family": (lambda folder: change(folder / "config.json", model_type="bert"), ("'bert'", "illada, llada")),
    "quantised": (
        lambda folder: change(folder / "config.json", quantization_config={"bits": 4}),
        ("quantised", "bfloat16 original"),
    ),
    "masks that disagree": (
        lambda folder: change(folder / "tokenizer_config.json", mask_token="<|endoftext|>"),
        ("names different masks",),
    ),
    "no tokenizer": (
        lambda folder: drop(folder, "tokenizer.json", "merges.txt"),
        ("has no tokenizer", "tokenizer.json"),
    ),
    "broken tokenizer": (
        lambda folder: [(folder / name).write_text("{}") for name in ("tokenizer.json", "vocab.json")],
        ("the tokenizer in", "cannot be read"),
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_checkpoint_is_refused(folder: Path, fault: str) -> None:
    damage, words = BROKEN[fault]
    damage(folder)
    refused(lambda: load_folder(folder), *words)


def test_a_shape_that_is_not_the_configs(llada: Path) -> None:
    change(llada / "config.json", mlp_hidden_size=65)
    refused(lambda: load_folder(llada), "ff_proj.weight", "65×32", "got 64×32", "different checkpoints")


@pytest.mark.parametrize("place", ["../secret.safetensors", "/etc/passwd", "a/../../b.safetensors", "..\\b", 7])
def test_an_index_that_points_outside_its_folder(llada: Path, place: Any) -> None:
    names = json.loads((llada / INDEX).read_text())["weight_map"]
    change(llada / INDEX, weight_map={**names, next(iter(names)): place})
    refused(lambda: load_folder(llada), "points outside its folder", repr(place), "do not trust")


def test_a_pickle(folder: Path) -> None:
    drop(folder, *(file.name for file in folder.glob("*.safetensors")), INDEX)
    refused(lambda: load_folder(folder), "has no weights", "model.safetensors")
    (folder / "pytorch_model-00001-of-00002.bin").write_bytes(b"")
    refused(lambda: load_folder(folder), "as pickle", "can run code", "save_file")


def test_a_tokenizer_without_a_mask(folder: Path) -> None:
    change(folder / "config.json", mask_token_id=None)
    load_folder(folder)  # the tokenizer names it
    change(folder / "tokenizer_config.json", mask_token=None)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        if (folder / file).exists():
            content = (folder / file).read_text()
            (folder / file).write_text(content.replace("<|mdm_mask|>", "<|other|>").replace("<|mask|>", "<|other|>"))
    drop(folder, "special_tokens_map.json", "added_tokens.json")
    refused(lambda: load_folder(folder), "does not say which token is the mask", "set mask_token_id in config.json")
    change(folder / "config.json", mask_token_id=320)
    refused(lambda: load_folder(folder), "mask_token_id", "0 to 319, got 320")


def test_the_context_exceeded(folder: Path) -> None:
    model = load_folder(folder)
    canvas = Canvas.blank([[1] * 500], 20, model.denoiser.mask_id)
    run = decoder.make("low-confidence")
    refused(lambda: decode(run, model.denoiser, canvas), "need 520 positions, the model takes 512", "by 8")


def test_names_that_name_nothing(tmp_path: Path) -> None:
    refused(lambda: load("toy-chian"), "unknown model 'toy-chian'", "did you mean 'toy-chain'?", "hub id")
    refused(lambda: load(tmp_path), "has no config.json")
    refused(lambda: load("./nowhere"), "there is no folder 'nowhere'")
    refused(lambda: load("toy-chain", revision="main"), "revision='main' is only for hub ids")
    assert load("toy-chain(letters=5)").name == "toy-chain"


def test_a_hub_that_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    refused(lambda: load("someone/Nothing"), "someone/Nothing is not in the local cache", "the folder of a copy")
    with pytest.raises(UnmaskError, match="cannot be reached"):
        snapshot("someone/Nothing", SETTINGS, "v2")


@pytest.mark.parametrize(
    ("key", "value"),
    [("block_type", "sequential"), ("alibi", True), ("include_bias", True), ("rope", False), ("num_experts", 64)],
)
def test_settings_the_transformer_does_not_implement(llada: Path, key: str, value: Any) -> None:
    change(llada / "config.json", **{key: value})
    refused(lambda: load_folder(llada), key, "in config.json is not supported")


def test_configs_with_wrong_values(folder: Path) -> None:
    layers, heads = ("n_layers", "n_heads") if folder.name == "llada" else ("num_hidden_layers", "num_attention_heads")
    original = (folder / "config.json").read_text()
    for settings, words in (
        ({layers: "two"}, (layers, "whole number, got 'two'")),
        ({layers: None}, (f"does not set {layers}",)),
        ({heads: 5}, (f"{heads}=5", "does not divide")),
        ({"rope_scaling": {"type": "yarn", "factor": 4}}, ("'yarn'", "only 'default'")),
    ):
        change(folder / "config.json", **settings)
        refused(lambda: load_folder(folder), *words)
        (folder / "config.json").write_text(original)
    for broken in ("{", "[]", "\xff"):
        (folder / "config.json").write_text(broken, encoding="latin-1")
        refused(lambda: load_folder(folder), "config.json", "download the file again")


def test_messages_a_template_refuses(llada: Path) -> None:
    refused(lambda: read_text(llada).chat([{"role": "user"}]), "a message must be")
    (llada / "chat_template.jinja").write_text("{{ raise_exception('only one turn') }}")
    refused(lambda: read_text(llada).chat(TALK), "these messages: only one turn")


def test_what_cannot_be_written(llada: Path, tmp_path: Path) -> None:
    refused(lambda: random_folder(llada, "llada", "nano"), "not empty", "name a new folder")
    refused(lambda: random_folder(tmp_path / "x", "lada", "nano"), "did you mean 'llada'?")
    refused(lambda: random_folder(tmp_path / "x", "llada", "9b"), "unknown size '9b'")
    assert not (tmp_path / "x").exists()
    tokenizer, module = read_text(llada).tokenizer, Transformer(Shape(8, 1, 2, 8, vocab=320, context=8))
    refused(lambda: save_folder(module, tokenizer, tmp_path / "y", mask="<no>", eos="a"), "no token '<no>'")
    torch.nn.init.constant_(module.norm.weight, 1e6)
    refused(lambda: save_folder(module, tokenizer, tmp_path / "z", mask="a", eos="b"), "float16 cannot represent")
    assert not (tmp_path / "z" / "config.json").exists()
