"""`unmask models`, as typed."""

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
    for words in ("family      llada", "2 layers of width 32", "316 <|mdm_mask|>", "319 <|eot_id|>"):
        assert words in printed
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    wrong = unmask("models", "inspect", "someone/Nothing")
    assert wrong.code == 2
    assert wrong.stderr.startswith("unmask: someone/Nothing is not in the local cache")
    assert wrong.stderr.count("\n") == 1
    wrong = unmask("models", "inspect", "toy-chain")
    assert "built by code" in wrong.stderr
    assert unmask("models", "inspct").stderr == "unmask: no command 'inspct': did you mean 'inspect'?\n"
