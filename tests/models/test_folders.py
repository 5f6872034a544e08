"""Checkpoints in each family's published format: written, read, decoded with, and loaded from the hub's cache."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import AutoTokenizer, Qwen2Tokenizer

import unmask.decoders  # noqa: F401  registers them
from tests.models.folders import FAMILIES, folder_of, published, some_shape, split_tokenizer
from unmask.core import Canvas, decode, decoder
from unmask.errors import UnmaskError
from unmask.models import defaults
from unmask.models.checkpoints import manifest, weights
from unmask.models.checkpoints.manifest import find_family
from unmask.models.checkpoints.random_weights import random_denoiser, random_folder, random_shape, special_ids
from unmask.models.checkpoints.tokenizer import read_text
from unmask.models.checkpoints.weights import copy, save_folder
from unmask.models.families.dream import Dream
from unmask.models.families.family import family as families
from unmask.models.families.llada import LLaDA
from unmask.models.load import empty, inspect_checkpoint, load, load_folder
from unmask.models.network.transformer import Shape, Transformer
from unmask.registry import Registry

TALK = [{"role": "user", "content": "the thing and an  other, 12+3 héllo 你"}]


@pytest.fixture(scope="module", params=FAMILIES)
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = random_folder(tmp_path_factory.mktemp("checkpoints") / request.param, request.param, "nano")
    if request.param == "dream":
        split_tokenizer(folder)
    return folder


@pytest.mark.parametrize("name", list(decoder))
def test_a_published_folder_decodes_with_every_decoder(name: str, checkpoint: Path) -> None:
    model = load(str(checkpoint))
    prompts = [model.text.encode(model.text.chat(TALK)), model.text.encode("in the")]
    canvas = Canvas.blank(prompts, 8, model.denoiser.mask_id)
    for result, prompt in zip(decode(decoder.make(name), model.denoiser, canvas), prompts, strict=True):
        for row, pad in zip(result.canvas.tokens.tolist(), result.canvas.pad.tolist(), strict=True):
            assert row[pad : pad + len(prompt)] == prompt
            assert model.denoiser.mask_id not in row[pad:]


def test_what_a_published_folder_holds(checkpoint: Path) -> None:
    files = {path.name for path in checkpoint.iterdir()}
    assert {"config.json", "model.safetensors.index.json", "tokenizer_config.json", "special_tokens_map.json"} <= files
    index = json.loads((checkpoint / "model.safetensors.index.json").read_text())
    assert len(set(index["weight_map"].values())) > 1
    for file in checkpoint.glob("*.safetensors"):
        held = load_file(file)  # the library's own reader takes what we wrote
        assert {name for name, place in index["weight_map"].items() if place == file.name} == set(held)
        assert {weight.dtype for weight in held.values()} == {torch.bfloat16}
    assert index["metadata"]["total_size"] == sum(weight.nbytes for weight in published(checkpoint).values())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_shape_survives_being_written_as_a_config(family: str) -> None:
    kind = families.make(family)
    for seed in range(20):
        shape = some_shape(family, seed)
        assert kind.shape(kind.config(shape, mask=1, eos=2)) == shape


def test_a_family_is_known_by_its_model_type_and_its_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = []
    monkeypatch.setattr("unmask.registry.entry_points", lambda group: groups.append(group) or [])
    registry = Registry(families.kind, families.plural)
    monkeypatch.setattr(manifest, "family", registry)
    registry("llada")(LLaDA)
    registry("dream")(Dream)

    @registry("dream-reasoner")
    class Reasoner(Dream):
        classes = ("ReasonerForCausalLM",)

    config = {"model_type": "Dream"}
    auto_map = {"AutoConfig": "configuration_dream.DreamConfig", "AutoModel": "someone/repo--modeling.DreamModel"}
    assert find_family({**config, "architectures": ["DreamModel"]}, tmp_path) == Dream()
    assert groups == ["unmask.families"]
    assert find_family({**config, "auto_map": auto_map}, tmp_path) == Dream()
    assert find_family({**config, "architectures": ["ReasonerForCausalLM"]}, tmp_path) == Reasoner()
    assert find_family({"model_type": "llada"}, tmp_path) == LLaDA()
    with pytest.raises(UnmaskError, match="matches the families dream and dream-reasoner"):
        find_family(config, tmp_path)
    with pytest.raises(UnmaskError, match=r"\['OtherModel'\].*did you mean 'DreamModel'"):
        find_family({**config, "architectures": ["OtherModel"]}, tmp_path)


def test_the_default_length_is_known_without_weights(checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "small-files"
    folder.mkdir()
    (folder / "config.json").write_bytes((checkpoint / "config.json").read_bytes())
    assert defaults(folder).length == defaults(str(folder)).length == families.make(checkpoint.name).length
    (folder / "generation_config.json").write_text('{"max_new_tokens": 40}')
    assert defaults(folder).length == 40
    for name in ("tiny", "toy-chain", "toy-joint(letters=3)"):
        assert defaults(name).length == load(name).default_length
    with pytest.raises(UnmaskError, match="unknown model 'toy-chian'"):
        defaults("toy-chian")


def test_special_ids_of_random_checkpoints_are_the_last() -> None:
    assert special_ids(LLaDA(), 126_464) == {"<|endoftext|>": 126_461, "<|eot_id|>": 126_462, "<|mdm_mask|>": 126_463}
    assert special_ids(Dream(), 320)[Dream.mask] == random_denoiser("dream-nano").mask_id == 319


def test_full_sizes_have_the_published_numbers_of_parameters() -> None:
    published = {"llada": 8_015_581_184, "dream": 7_615_616_512, "sdar": 8_190_735_360, "llada-moe": 7_356_880_896}
    assert {family: random_shape(family, "full").parameters for family in published} == published


def test_dreams_context_is_what_it_was_trained_on() -> None:
    config = Dream().config(random_shape("dream", "nano"), mask=1, eos=2)
    assert Dream().shape({**config, "max_position_embeddings": 131_072}).context == 2048
    assert Dream().shape({**config, "max_position_embeddings": 4096}).context == 4096
    del config["rope_theta"]
    assert Dream().shape({**config, "rope_parameters": {"rope_theta": 1e4, "rope_type": "default"}}).theta == 1e4


def test_text_goes_through_the_tokenizer_as_in_the_published_library(checkpoint: Path) -> None:
    text = read_text(checkpoint)
    library = {"llada": AutoTokenizer, "dream": Qwen2Tokenizer}[checkpoint.name]
    tokenizer = library.from_pretrained(str(checkpoint))
    for example in ("the thing", " and  in\n\n the 12+345\tit's", "héllo 你", "a<|endoftext|>b", ""):
        assert text.encode(example) == tokenizer.encode(example, add_special_tokens=False)
        assert text.decode(text.encode(example)) == example
    assert text.chat(TALK) == tokenizer.apply_chat_template(TALK, tokenize=False, add_generation_prompt=True)


def test_a_trailing_assistant_message_is_left_open(checkpoint: Path) -> None:
    text = read_text(checkpoint)
    opened = text.chat([*TALK, {"role": "assistant", "content": "<reasoning>\n"}])
    assert opened == text.chat(TALK) + "<reasoning>\n"
    assert "5<|endoftext|>" in text.chat([*TALK, {"role": "assistant", "content": "5"}, *TALK])


def test_a_template_is_read_from_each_place_it_may_be_in(checkpoint: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoint, tmp_path / "copy"))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["chat_template"] = [{"name": "default", "template": "one"}, {"name": "tools", "template": "two"}]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    assert read_text(folder).chat(TALK) == "one"
    (folder / "chat_template.jinja").write_text("{{ messages | length }}")
    assert read_text(folder).chat(TALK) == "1"
    (folder / "chat_template.jinja").unlink()
    del settings["chat_template"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    assert read_text(folder).chat([*TALK, {"role": "assistant", "content": "So"}]) == TALK[0]["content"] + "\n\nSo"


def test_loading_reads_each_small_file_once_and_decoding_none(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    original = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda path, *a, **k: (read.append(path.name), original(path, *a, **k))[1])
    model = load_folder(checkpoint)
    assert {"config.json", "tokenizer_config.json", "model.safetensors.index.json"} <= set(read)
    assert len(read) == len(set(read))
    read.clear()
    canvas = Canvas.blank([model.text.encode(model.text.chat(TALK))], 4, model.denoiser.mask_id)
    decode(decoder.make("low-confidence"), model.denoiser, canvas)
    assert not read


def test_a_folder_loads_in_the_given_dtype(checkpoint: Path) -> None:
    model = load_folder(checkpoint, dtype="float64")
    assert model.denoiser.dtype == torch.float64
    assert load_folder(checkpoint).denoiser.dtype == torch.float32
    assert model.name == checkpoint.name
    assert model.default_length == {"llada": 128, "dream": 256}[checkpoint.name]
    ends = {"llada": ("<|endoftext|>", "<|eot_id|>"), "dream": ("<|endoftext|>", "<|im_end|>")}[checkpoint.name]
    assert {model.text.decode([number]) for number in model.eos} == set(ends)


def test_a_module_saved_in_shards_of_float16_loads_as_it_was(tmp_path: Path) -> None:
    tokenizer = Tokenizer(BPE({letter: n for n, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token) for token in ("<mask>", "<end>")])
    shape = Shape(32, 2, 4, 48, vocab=tokenizer.get_vocab_size(), context=64, kv_heads=2, tied=True)
    module = Transformer(shape).half().float()
    folder = tmp_path / "mine"
    for shard in (10_000, 50_000, 10_000_000):  # over the previous files
        save_folder(
            module,
            tokenizer,
            folder,
            mask="<mask>",
            eos="<end>",
            template="{{ messages[0].content }}",
            shard=shard,
            length=40,
        )
        assert len(inspect_checkpoint(folder).shards) == len(list(folder.glob("*.safetensors")))
        big = [file for file in folder.glob("*.safetensors") if file.stat().st_size > shard + 4096]
        assert all(len(load_file(file)) == 1 for file in big)  # only a tensor that is larger by itself
        model = load_folder(folder)
        assert model.default_length == 40
        assert model.text.encode("a<mask>")[-1] == model.denoiser.mask_id
        read = model.denoiser.module.state_dict()  # type: ignore[attr-defined]
        assert all(torch.equal(read[name], weight) for name, weight in module.state_dict().items())
    assert len(inspect_checkpoint(folder).shards) == 1


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for its memory")
def test_loading_holds_the_weights_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards are mapped and copied in slices: beyond the module's own memory there is room for a slice."""
    shape = Shape(128, 1, 4, 256, vocab=60_000, context=64)
    folder = random_folder(tmp_path / "wide", "llada", shape=shape, shard=2**24)
    load_folder(folder)  # what is allocated once is allocated
    sizes = []

    def watched(target: torch.Tensor, source: torch.Tensor) -> None:
        copy(target, source)
        sizes.append(_anonymous())

    monkeypatch.setattr(weights, "copy", watched)
    monkeypatch.setattr(weights, "PIECE", 2**20)
    before = _anonymous()
    model = load_folder(folder)
    assert max(sizes) - before < shape.parameters * 4 + 2**23
    assert model.denoiser.context == 64


def _anonymous() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def test_a_tied_head_is_the_embedding_and_needs_no_extra_memory() -> None:
    module = empty(Shape(32, 1, 4, 48, vocab=100, context=64, tied=True), torch.device("cpu"), torch.float32)
    assert module.head.weight is module.embed.weight
    assert not any(weight.requires_grad for weight in module.parameters())


def test_random_checkpoints_are_the_same_for_a_seed(tmp_path: Path) -> None:
    folders = (folder_of(tmp_path / name, "llada", seed=seed) for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    first, second, third = map(published, folders)
    assert all(torch.equal(weight, second[name]) for name, weight in first.items())
    assert not any(torch.equal(weight, third[name]) for name, weight in first.items())


def test_a_hub_id_loads_from_the_hubs_cache_offline(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "hub"
    _as_hub_cache(checkpoint, cache, "someone/Tiny-Model")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(cache))
    model, direct = load("someone/Tiny-Model"), load_folder(checkpoint)
    assert model.name == "someone/Tiny-Model"
    canvas = Canvas.blank([model.text.encode("the")], 4, model.denoiser.mask_id)
    results = [decode(decoder.make("low-confidence"), each.denoiser, canvas)[0] for each in (model, direct)]
    assert torch.equal(results[0].canvas.tokens, results[1].canvas.tokens)
    assert inspect_checkpoint("someone/Tiny-Model").shards == inspect_checkpoint(checkpoint).shards
    assert load("someone/Tiny-Model", revision="main").eos == model.eos
    assert defaults("someone/Tiny-Model").length == model.default_length


def test_a_single_file_without_an_index_loads(checkpoint: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoint, tmp_path / "single"))
    weights = published(folder)
    for file in (*folder.glob("*.safetensors"), folder / "model.safetensors.index.json"):
        file.unlink()
    save_file(weights, folder / "model.safetensors")
    assert load_folder(folder).eos == load_folder(checkpoint).eos
    assert inspect_checkpoint(folder).shards == ["model.safetensors"]


def _as_hub_cache(folder: Path, cache: Path, name: str) -> None:
    """Lay out a folder as the hub's client does: contents in blobs, names in snapshots, branches in refs."""
    home, commit = cache / f"models--{name.replace('/', '--')}", "0123456789abcdef0123456789abcdef01234567"
    for part in ("blobs", "refs", f"snapshots/{commit}"):
        (home / part).mkdir(parents=True)
    (home / "refs" / "main").write_text(commit)
    for number, file in enumerate(sorted(folder.iterdir())):
        (home / "blobs" / f"{number:064x}").write_bytes(file.read_bytes())
        (home / "snapshots" / commit / file.name).symlink_to(Path("../../blobs") / f"{number:064x}")
