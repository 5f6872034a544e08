"""Checkpoints that are wrong, or made to do harm: each is refused in one sentence, before memory is allocated."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from tests.models.folders import change, folder_of, refused
from unmask.cli import main
from unmask.models.checkpoints.tokenizer import read_text
from unmask.models.load import inspect_checkpoint, load_folder
from unmask.runs.text import read_prompt

INDEX = "model.safetensors.index.json"
TALK = [{"role": "user", "content": "the"}]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("originals")
    return {family: folder_of(home / family, family) for family in ("llada", "dream", "sdar", "llada2", "llada-moe")}


@pytest.fixture
def copy_of(originals: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    return lambda family: Path(shutil.copytree(originals[family], tmp_path / family))


CONFIGS = [
    *(("llada", key, value) for key in ("n_kv_heads", "mlp_hidden_size") for value in ("4", -2, 1e999, 0, [4], True)),
    *(("dream", "num_key_value_heads", value) for value in ("2", -1, 1e999, 2.5, {})),
    ("llada", "model_type", []),
    ("llada", "d_model", 1e999),
    ("llada", "n_heads", 32),  # heads of width 1
    ("llada", "mask_token_id", True),
    ("llada", "mask_token_id", -1),
    ("llada", "eos_token_id", [[1]]),
    ("llada", "eos_token_id", True),
    ("llada", "layer_norm_type", None),
    ("llada", "weight_tying", "no"),
    ("llada", "rms_norm_eps", "small"),
    ("llada", "n_layers", 10**6),
    ("llada", "vocab_size", 10**9),
    ("dream", "rope_parameters", "default"),
    ("dream", "rope_scaling", ["yarn"]),
    ("dream", "rope_theta", "1e6"),
    ("sdar", "head_dim", 7),
    ("sdar", "head_dim", "8"),
    ("sdar", "block_size", 0),
    ("sdar", "block_size", "4"),
    ("sdar", "attention_bias", True),
    ("llada2", "num_experts", 10**7),
    ("llada2", "num_experts_per_tok", 9),
    ("llada2", "n_group", 3),
    ("llada2", "n_group", 8),
    ("llada2", "partial_rotary_factor", 0.01),
    ("llada2", "use_bias", None),
    ("llada2", "first_k_dense_replace", -1),
    ("llada-moe", "moe_layer_freq", [1, 0]),
    ("llada-moe", "moe_layer_freq", "all"),
    ("llada-moe", "moe_router_score_function", "sigmoid"),
]


def test_configs_with_values_that_cannot_be(originals: dict[str, Path], monkeypatch: pytest.MonkeyPatch):
    loading = import_module("unmask.models.load")  # the package has a function of this name
    for family, key, value in CONFIGS:
        built = f"a module was built with {key}={value}"
        monkeypatch.setattr(loading, "empty", lambda *a, built=built, **k: pytest.fail(built))
        path = originals[family] / "config.json"
        before = path.read_text()
        change(path, **{key: value, **({"embedding_size": value} if key == "vocab_size" else {})})
        try:
            vague = key in ("mask_token_id", "n_heads", "vocab_size") or "rope" in key
            words = () if vague else (key.split("_")[0],)
            refused(lambda family=family: load_folder(originals[family]), *words)
        finally:
            path.write_text(before)


def test_a_mask_that_is_an_ordinary_token(copy_of: Callable[[str], Path]):
    folder = copy_of("llada")
    text = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text(text.replace("<|mdm_mask|>", "<|other|>"))
    change(folder / "config.json", mask_token_id=70)
    refused(lambda: load_folder(folder), "mask_token_id=70 is the ordinary token")
    (folder / "tokenizer.json").write_text(text)
    refused(lambda: load_folder(folder), "names different masks, 70 and 319")


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 50_000, '{"n_layers": ' + "9" * 5000 + "}", "\udcff"])
def test_json_that_cannot_be_read(content: str, copy_of: Callable[[str], Path]):
    folder = copy_of("llada")
    for name in ("config.json", "tokenizer_config.json", INDEX):
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(content.encode("utf-8", "surrogateescape"))
        refused(lambda: load_folder(folder), name, "download the file again")
        (folder / name).write_bytes(before)


@pytest.mark.parametrize(
    "template",
    [
        "{{ 1 // 0 }}",
        "{{ 'a' * 10**10 }}",
        "{{ 'a'.center(10**10) }}",
        "{{ messages[0].nothing.at_all }}",
        pytest.param(
            "{% for i in range(99999) %}{% for j in range(99999) %}{{ i * j }}{% endfor %}{% endfor %}",
            marks=pytest.mark.slow,
        ),
        "{% set ns = namespace(x='aa') %}{% for i in range(40) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
        "{{ 10 ** (10 ** 6) }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ ''.__class__.__mro__ }}",
    ],
)
def test_templates_that_do_not_end_well(template: str, copy_of: Callable[[str], Path]):
    folder = copy_of("llada")
    (folder / "chat_template.jinja").write_text(template)
    refused(lambda: read_text(folder).chat(TALK), "the chat template")
    (folder / "chat_template.jinja").write_text("{{ messages | length }}")
    assert read_text(folder).chat(TALK) == "1"  # the next one is rendered as ever


def test_templates_that_are_not_text(copy_of: Callable[[str], Path]):
    folder = copy_of("llada")
    change(folder / "tokenizer_config.json", chat_template={"default": "a"})
    refused(lambda: read_text(folder), "chat_template in tokenizer_config.json must be text")
    change(folder / "tokenizer_config.json", chat_template=[7, {"name": "default", "template": [1]}])
    refused(lambda: read_text(folder), "must be text")
    change(folder / "tokenizer_config.json", chat_template=[{"name": "tools"}])
    assert read_text(folder).template is None
    (folder / "chat_template.jinja").mkdir()
    refused(lambda: read_text(folder), "chat_template.jinja is not a file")
    (folder / "chat_template.jinja").rmdir()
    (folder / "chat_template.jinja").write_bytes(b"\xff\xfe")
    refused(lambda: read_text(folder), "chat_template.jinja cannot be read")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors.index.json", "shard"])
def test_pipes_in_place_of_files(name: str, copy_of: Callable[[str], Path]):
    folder = copy_of("llada")
    path = sorted(folder.glob("*.safetensors"))[0] if name == "shard" else folder / name
    path.unlink()
    os.mkfifo(path)
    refused(lambda: load_folder(folder), f"{path.name} is not a file")


def test_an_index_that_is_wrong(copy_of: Callable[[str], Path]):
    folder = copy_of("llada")
    index = json.loads((folder / INDEX).read_text())
    name = next(iter(index["weight_map"]))
    for settings, words in (
        ({"metadata": [1]}, "metadata that is not an object"),
        ({"weight_map": {**index["weight_map"], name: "s" * 5000}}, "names a shard of 5000 characters"),
        ({"weight_map": {**index["weight_map"], name: "gone.safetensors"}}, "shard gone.safetensors is missing"),
    ):
        (folder / INDEX).write_text(json.dumps({**index, **settings}))
        refused(lambda: load_folder(folder), words)
    (folder / INDEX).write_text(json.dumps({**index, "metadata": {"total_size": "much"}}))
    assert inspect_checkpoint(folder).stored


def test_a_tensor_in_two_shards(copy_of: Callable[[str], Path]):
    folder = copy_of("llada")
    first, second = sorted(folder.glob("*.safetensors"))[:2]
    name, weight = next(iter(load_file(first).items()))
    save_file({**load_file(second), name: weight}, second)
    refused(lambda: load_folder(folder), f"weight {name} is in {first.name} and in {second.name}")


def test_token_ids_beyond_the_vocabulary(copy_of: Callable[[str], Path]):
    folder = copy_of("llada")
    model = load_folder(folder)
    for ids, shown in (([5, 320], "320"), ([-1], "-1"), ([2**70], str(2**70)[:20])):
        refused(lambda ids=ids: read_prompt(model, ids), f"token id {shown} (number ", "0 to 319")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["added_tokens"].append({**tokenizer["added_tokens"][0], "id": 321, "content": "<|far|>"})
    tokenizer["model"]["vocab"]["<|far|>"] = 321
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    model = load_folder(folder)
    assert model.text.encode("<|far|>") == [321]
    refused(lambda: read_prompt(model, "a<|far|>"), "token id 321")


def test_classes_that_are_not_names(copy_of: Callable[[str], Path]):
    folder = copy_of("llada")
    change(folder / "config.json", architectures={"a": 1}, auto_map=["b"])
    assert load_folder(folder).name == "llada"
    change(folder / "config.json", architectures=[["LLaDAModelLM"], 7], auto_map={"AutoModel": [1]})
    assert load_folder(folder).name == "llada"


@pytest.mark.slow
def test_the_command_answers_with_one_sentence_and_code_2(
    copy_of: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    folder = copy_of("llada")
    change(folder / "config.json", n_layers=10**6)
    monkeypatch.setattr("sys.argv", ["unmask", "generate", "the", "--model", str(folder)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "n_layers in config.json must be at most 1,024" in error
