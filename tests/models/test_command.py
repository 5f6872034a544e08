"""`unmask models`, as it is typed."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest
from huggingface_hub import constants

from tests.models.folders import FAMILIES
from unmask.cli import main


@dataclass
class Said:
    code: int
    stdout: str
    stderr: str


class Command(Protocol):
    def __call__(self, *words: str) -> Said: ...


@pytest.fixture
def unmask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["unmask", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out = capsys.readouterr()
        return Said(int(ended.value.code or 0), out.out, out.err)

    return run


def test_a_random_checkpoint_is_made_and_inspected(unmask: Command, tmp_path: Path) -> None:
    for family in FAMILIES:
        folder = str(tmp_path / family)
        made = unmask("models", "random", "--family", family, "--size", "nano", folder, "--seed", "3", "--json")
        assert json.loads(made.stdout)["folder"] == folder, made.stderr
        found = json.loads(unmask("models", "inspect", folder, "--json").stdout)
        assert found["family"] == family
        assert found["parameters"] * 2 == found["bytes"]["bfloat16"] == found["stored"]
        assert found["template"]
        assert len(found["shards"]) > 1
        assert found["missing"] == []
        assert found["needed"]["bfloat16"] > found["bytes"]["bfloat16"]


def test_an_inspection_reads_well_and_misspellings_are_answered(
    unmask: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path / "it")
    assert "random parameters in" in unmask("models", "random", folder, "--dtype", "float32").stdout
    said = unmask("models", "inspect", folder).stdout
    for words in ("family      llada", "2 layers of width 32", "316 <|mdm_mask|>", "319 <|eot_id|>"):
        assert words in said
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    wrong = unmask("models", "inspect", "someone/Nothing")
    assert wrong.code == 2
    assert wrong.stderr.startswith("unmask: someone/Nothing is not in the local cache")
    assert wrong.stderr.count("\n") == 1
    wrong = unmask("models", "inspect", "toy-chain")
    assert "made by code" in wrong.stderr
    assert unmask("models", "inspct").stderr == "unmask: no command 'inspct': did you mean 'inspect'?\n"
