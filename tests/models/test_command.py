"""`unmask models`, as typed."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest
from huggingface_hub import constants

from tests.models.folders import FAMILIES
from unmask.api import generate
from unmask.cli import main
from unmask.models.checkpoints.random_weights import random_folder
from unmask.models.load import load_folder


@dataclass
class Result:
    code: int
    stdout: str
    stderr: str


class Command(Protocol):
    def __call__(self, *words: str) -> Result: ...


@pytest.fixture
def unmask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: str) -> Result:
        monkeypatch.setattr(sys, "argv", ["unmask", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out = capsys.readouterr()
        return Result(int(ended.value.code or 0), out.out, out.err)

    return run


def test_a_random_checkpoint_is_made_and_inspected(unmask: Command, tmp_path: Path) -> None:
    for family in FAMILIES:
        folder = str(tmp_path / family)
        written = unmask("models", "random", "--family", family, "--size", "nano", folder, "--seed", "3", "--json")
        assert json.loads(written.stdout)["folder"] == folder, written.stderr
        inspection = json.loads(unmask("models", "inspect", folder, "--json").stdout)
        assert inspection["family"] == family
        assert inspection["parameters"] * 2 == inspection["bytes"]["bfloat16"] == inspection["stored"]
        assert inspection["template"]
        assert len(inspection["shards"]) > 1
        assert inspection["missing"] == []
        assert inspection["needed"]["bfloat16"] > inspection["bytes"]["bfloat16"]


def test_an_inspection_is_readable_and_misspellings_are_answered(
    unmask: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path / "it")
    assert "random parameters in" in unmask("models", "random", folder, "--dtype", "float32").stdout
    printed = unmask("models", "inspect", folder).stdout
    for words in ("family      llada", "2 layers of width 32", "319 <|mdm_mask|>", "318 <|eot_id|>"):
        assert words in printed
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    wrong = unmask("models", "inspect", "someone/Nothing")
    assert wrong.code == 2
    assert wrong.stderr.startswith("unmask: someone/Nothing is not in the local cache")
    assert wrong.stderr.count("\n") == 1
    wrong = unmask("models", "inspect", "toy-chain")
    assert "built by code" in wrong.stderr
    assert unmask("models", "inspct").stderr == "unmask: unknown command 'inspct': did you mean 'inspect'?\n"


def test_a_family_comes_first_where_the_folder_is_an_option(unmask: Command, tmp_path: Path) -> None:
    folder = str(tmp_path / "it")
    assert "random parameters" in unmask("models", "random", "sdar", "--out", folder).stdout
    printed = unmask("models", "inspect", folder).stdout
    for words in ("family      sdar", "block-causal, blocks of 4", "caches      exact, on by default"):
        assert words in printed
    inspection = json.loads(unmask("models", "inspect", folder, "--json").stdout)
    assert (inspection["attention"], inspection["caches"]) == ("block-causal", {"exact": ["exact"], "approximate": []})
    for words, sentence in (
        (("sdar",), "'sdar' is a family: name a new folder with --out"),
        (("sdra", "--out", folder + "2"), "did you mean 'sdar'?"),
        (("sdar", "--out", folder, "--family", "dream"), "the family is named twice"),
        (("sdar", "--out", folder), "name a new folder"),
    ):
        wrong = unmask("models", "random", *words)
        assert wrong.code == 2
        assert sentence in wrong.stderr


def test_a_search_on_a_block_causal_model_says_what_its_likelihood_is_worth(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = load_folder(random_folder(tmp_path / "it", "sdar"))
    out = generate(model, "the", decoder="ots(beams=2)", length=8)
    assert out.settings["cache"] == "exact"
    assert "block=4" in out.settings["decoder"]
    sentences = [record.getMessage() for record in caplog.records]
    assert len(sentences) == 1
    for words in (
        "it is block-causal",
        "the likelihood block is future-masked there",
        "likelihood=interleaved",
        "the decoder search",
    ):
        assert words in sentences[0]
    caplog.clear()
    for decoder in ("ots(beams=2, likelihood=interleaved)", "low-confidence", "search(budget=20, plausible=0.01)"):
        plain = generate(model, "the", decoder=decoder, length=8, cache="none")
        assert plain.text == generate(model, "the", decoder=decoder, length=8).text
    assert not caplog.records
