"""A checkpoint that cannot be loaded is refused in one sentence that says what to do."""

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file, save_file

from unmask.core import Canvas, decode, decoder
from unmask.errors import UnmaskError
from unmask.models import devices as memory
from unmask.models.checkpoints import hub
from unmask.models.checkpoints.random_weights import random_folder, random_shape
from unmask.models.checkpoints.save import save_folder
from unmask.models.checkpoints.tokenizer import read_text
from unmask.models.devices import check_fits, choose_dtype
from unmask.models.load import load, load_folder
from unmask.models.network.transformer import Shape, Transformer

INDEX = "model.safetensors.index.json"


@pytest.fixture(params=("llada", "dream"))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return random_folder(tmp_path / request.param, request.param, "nano")


@pytest.fixture
def llada(tmp_path: Path) -> Path:
    return random_folder(tmp_path / "llada", "llada", "nano")


def change(path: Path, **settings: Any) -> None:
    """Set keys of a JSON file; None removes one."""
    table = {**json.loads(path.read_text()), **settings}
    path.write_text(json.dumps({key: value for key, value in table.items() if value is not None}))


def refused(call: Callable[[], object], *words: str) -> None:
    with pytest.raises(UnmaskError) as caught:
        call()
    sentence = str(caught.value)
    assert "\n" not in sentence
    for word in words:
        assert word in sentence, sentence


def shard(folder: Path) -> Path:
    return sorted(folder.glob("*.safetensors"))[1]


def test_a_missing_shard(folder: Path) -> None:
    gone = shard(folder)
    gone.unlink()
    refused(lambda: load_folder(folder), f"shard {gone.name} is missing", "fetch the checkpoint again")


def test_a_truncated_shard(folder: Path) -> None:
    short = shard(folder)
    short.write_bytes(short.read_bytes()[:-100])
    refused(lambda: load_folder(folder), f"{short.name} is cut short or damaged", "fetch the file again")
    short.write_bytes(short.read_bytes()[:5])
    refused(lambda: load_folder(folder), f"{short.name} is cut short or damaged")
    short.write_bytes(b"")
    refused(lambda: load_folder(folder), f"{short.name} is cut short or damaged")


def test_a_shape_that_is_not_the_configs(llada: Path) -> None:
    change(llada / "config.json", mlp_hidden_size=65)
    refused(lambda: load_folder(llada), "ff_proj.weight", "has shape 64×32", "asks for 65×32", "different checkpoints")


def test_a_weight_that_is_in_no_shard(llada: Path) -> None:
    held = load_file(shard(llada))
    name = sorted(held)[0]
    save_file({key: weight for key, weight in held.items() if key != name}, shard(llada))
    refused(lambda: load_folder(llada), f"weight {name} is not in {shard(llada).name}", "incomplete")


def test_a_weight_that_nothing_asks_for(llada: Path) -> None:
    name = "model.transformer.blocks.0.attn_out.bias"
    save_file({**load_file(shard(llada)), name: torch.zeros(32)}, shard(llada))
    refused(lambda: load_folder(llada), f"weight {name}", "is not part of a llada model")


def test_weights_that_are_not_floats(llada: Path) -> None:
    save_file({name: weight.to(torch.int8) for name, weight in load_file(shard(llada)).items()}, shard(llada))
    refused(lambda: load_folder(llada), "is I8", "only F64, F32, F16, BF16 are read")


@pytest.mark.parametrize("place", ["../secret.safetensors", "/etc/passwd", "a/../../b.safetensors", "..\\b", 7])
def test_an_index_that_points_outside_its_folder(folder: Path, place: Any) -> None:
    names = json.loads((folder / INDEX).read_text())["weight_map"]
    change(folder / INDEX, weight_map={**names, next(iter(names)): place})
    refused(lambda: load_folder(folder), "points outside its folder", repr(place), "do not trust")


def test_an_index_that_maps_nothing(folder: Path) -> None:
    change(folder / INDEX, weight_map=None)
    refused(lambda: load_folder(folder), "has no weight_map")


def test_an_unknown_family(folder: Path) -> None:
    change(folder / "config.json", model_type="lladda")
    refused(lambda: load_folder(folder), "'lladda'", "did you mean 'llada'?", "unmask.wrap")
    change(folder / "config.json", model_type="bert")
    refused(lambda: load_folder(folder), "'bert'", "illada, llada")


def test_a_pickle(folder: Path) -> None:
    for file in (*folder.glob("*.safetensors"), folder / INDEX):
        file.unlink()
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
    for file in ("special_tokens_map.json", "added_tokens.json"):
        (folder / file).unlink(missing_ok=True)
    refused(lambda: load_folder(folder), "does not say which token is the mask", "set mask_token_id in config.json")


def test_masks_that_disagree_or_do_not_exist(folder: Path) -> None:
    change(folder / "tokenizer_config.json", mask_token="<|endoftext|>")
    refused(lambda: load_folder(folder), "names different masks")
    change(folder / "tokenizer_config.json", mask_token=None)
    (folder / "special_tokens_map.json").unlink()
    change(folder / "config.json", mask_token_id=320)
    refused(lambda: load_folder(folder), "mask_token_id=320", "0 to 319")


def test_no_tokenizer(folder: Path) -> None:
    for file in ("tokenizer.json", "merges.txt"):
        (folder / file).unlink(missing_ok=True)
    refused(lambda: load_folder(folder), "has no tokenizer", "tokenizer.json")


def test_a_tokenizer_that_cannot_be_read(llada: Path) -> None:
    (llada / "tokenizer.json").write_text("{}")
    refused(lambda: load_folder(llada), "the tokenizer in", "cannot be read")


def test_the_context_exceeded(folder: Path) -> None:
    model = load_folder(folder)
    canvas = Canvas.blank([[1] * 500], 20, model.denoiser.mask_id)
    run = decoder.make("low-confidence")
    refused(lambda: decode(run, model.denoiser, canvas), "need 520 positions, the model takes 512", "by 8")


def test_half_precision_on_a_cpu_that_cannot(llada: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial dies as on CPUs that announce instructions they do not have."""
    monkeypatch.setattr(memory, "_PROBE", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    memory.half_works.cache_clear()
    try:
        for dtype in ("bfloat16", torch.float16):
            refused(
                lambda dtype=dtype: load_folder(llada, dtype=dtype), "this CPU cannot compute in", "dtype='float32'"
            )
        load_folder(llada)  # the default does not try
    finally:
        memory.half_works.cache_clear()


def test_half_precision_is_tried_in_a_separate_process(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: Iterator[int] = iter([0, -signal.SIGILL])
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: subprocess.CompletedProcess([], next(codes)))
    memory.half_works.cache_clear()
    try:
        assert choose_dtype("bfloat16", torch.device("cpu")) == torch.bfloat16
        assert choose_dtype("float16", torch.device("cpu")) == torch.float16  # tried once
        memory.half_works.cache_clear()
        refused(lambda: choose_dtype("bfloat16", torch.device("cpu")), "a trial in another process died")
    finally:
        memory.half_works.cache_clear()


def test_more_memory_than_there_is(llada: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "half_works", lambda: True)
    monkeypatch.setattr(memory, "free", lambda device: 20 * 10**9)
    shape, cpu = random_shape("llada", "8b"), torch.device("cpu")
    refused(
        lambda: check_fits("GSAI-ML/LLaDA-8B-Instruct", shape, torch.float32, cpu),
        *("needs about 33", "32.1 GB of weights", "cpu has 20.0 GB free", "dtype='bfloat16' would fit"),
    )
    monkeypatch.setattr(memory, "half_works", lambda: False)
    refused(lambda: check_fits("it", shape, torch.float32, cpu), "smaller model")
    monkeypatch.setattr(memory, "free", lambda device: 1000)
    monkeypatch.setattr(
        import_module("unmask.models.load"),
        "empty",
        lambda *a, **k: pytest.fail("memory was allocated before the refusal"),
    )
    refused(lambda: load_folder(llada), "needs about", "cpu has 1.0 kB free")


def test_free_memory_is_plausible() -> None:
    size = memory.free(torch.device("cpu"))
    assert size is None or 10**8 < size < 10**14
    assert memory.free(torch.device("meta")) is None


def test_unknown_devices_and_dtypes(llada: Path) -> None:
    refused(lambda: load_folder(llada, device="gpu"), "unknown device 'gpu'", "did you mean 'cuda'?")
    refused(lambda: load_folder(llada, dtype="bf16"), "dtype 'bf16'", "did you mean 'bfloat16'?")
    refused(lambda: load_folder(llada, dtype=torch.int8), "dtype 'int8'")
    refused(lambda: load_folder(llada, device="xpu:9"), "device 'xpu:9' is not available", "'cpu'")
    if not torch.cuda.is_available():
        refused(lambda: load_folder(llada, device="cuda"), "torch sees no GPU", "device='cpu'")


def test_names_that_name_nothing(tmp_path: Path) -> None:
    refused(lambda: load("toy-chian"), "unknown model 'toy-chian'", "did you mean 'toy-chain'?", "hub id")
    refused(lambda: load(tmp_path), "has no config.json")
    refused(lambda: load("./nowhere"), "there is no folder 'nowhere'")
    refused(lambda: load("toy-chain", revision="main"), "revision='main' is for hub ids")
    assert load("toy-chain(letters=5)").name == "toy-chain"


def test_a_hub_that_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    refused(lambda: load("someone/Nothing"), "someone/Nothing is not in the local cache", "give the folder of a copy")
    with pytest.raises(UnmaskError, match="cannot be reached"):
        hub.snapshot("someone/Nothing", hub.SETTINGS, "v2")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("block_type", "sequential"),
        ("alibi", True),
        ("include_bias", True),
        ("activation_type", "gelu"),
        ("rope", False),
    ],
)
def test_settings_the_transformer_does_not_implement(llada: Path, key: str, value: Any) -> None:
    change(llada / "config.json", **{key: value})
    refused(lambda: load_folder(llada), f"{key}={value!r}, which is not supported")


def test_configs_with_wrong_values(folder: Path) -> None:
    layers = "n_layers" if folder.name == "llada" else "num_hidden_layers"
    heads = "n_heads" if folder.name == "llada" else "num_attention_heads"
    original = (folder / "config.json").read_text()
    for settings, words in (
        ({layers: "two"}, (f"{layers}='two'", "whole number")),
        ({layers: None}, (f"does not set {layers}",)),
        ({heads: 5}, (f"{heads}=5", "does not divide")),
        ({"quantization_config": {"bits": 4}}, ("quantised", "bfloat16 original")),
    ):
        change(folder / "config.json", **settings)
        refused(lambda: load_folder(folder), *words)
        (folder / "config.json").write_text(original)
    for broken in ("{", "[]", "\xff"):
        (folder / "config.json").write_text(broken, encoding="latin-1")
        refused(lambda: load_folder(folder), "config.json", "fetch the file again")


def test_mixtures_of_experts_and_scaled_positions(folder: Path) -> None:
    if folder.name == "llada":
        change(folder / "config.json", num_experts=64)
        refused(lambda: load_folder(folder), "mixture of experts")
    else:
        change(folder / "config.json", rope_scaling={"type": "yarn", "factor": 4})
        refused(lambda: load_folder(folder), "'yarn'", "only 'default'")


def test_messages_a_template_refuses(llada: Path) -> None:
    text = read_text(llada)
    refused(lambda: text.chat([{"role": "user"}]), "a message is {'role': …, 'content': …}")
    (llada / "chat_template.jinja").write_text("{{ raise_exception('only one turn') }}")
    refused(lambda: read_text(llada).chat([{"role": "user", "content": "a"}]), "template", "only one turn")
    (llada / "chat_template.jinja").write_text("{{ messages.__class__.__mro__ }}")
    refused(lambda: read_text(llada).chat([{"role": "user", "content": "a"}]), "template")  # the sandbox holds


def test_what_cannot_be_written(llada: Path, tmp_path: Path) -> None:
    refused(lambda: random_folder(llada, "llada", "nano"), "not empty", "name a new folder")
    refused(lambda: random_folder(tmp_path / "x", "lada", "nano"), "did you mean 'llada'?")
    refused(lambda: random_folder(tmp_path / "x", "llada", "9b"), "unknown size '9b'")
    assert not (tmp_path / "x").exists()
    tokenizer, module = read_text(llada).tokenizer, Transformer(Shape(8, 1, 2, 8, vocab=320, context=8))
    refused(lambda: save_folder(module, tokenizer, tmp_path / "y", mask="<no>", eos="a"), "no token '<no>'")
    torch.nn.init.constant_(module.norm.weight, 1e6)
    refused(lambda: save_folder(module, tokenizer, tmp_path / "z", mask="a", eos="b"), "float16 cannot hold")
    assert not re.search("config.json", " ".join(path.name for path in (tmp_path / "z").iterdir()))
