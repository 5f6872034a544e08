"""The commands and the code of the pages on scoring, export and harnesses run as they stand there."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
import torch

from unmask.cli import main
from unmask.integrations.arguments import DECODING, PLACEMENT

pytestmark = pytest.mark.slow
DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks(page: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(sh|python)\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["scoring.md", "export.md"])
def test_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    assert {kind for kind, _ in blocks(page)} == {"sh", "python"}
    for kind, block in blocks(page):
        if kind == "python":
            exec(compile(block, page, "exec"), {})
        for line in block.splitlines() if kind == "sh" else ():
            monkeypatch.setattr(sys, "argv", shlex.split(line))
            with pytest.raises(SystemExit) as ended:
                main()
            assert not ended.value.code, capsys.readouterr().err


def test_the_page_on_harnesses_decodes_with_transformers_and_names_every_argument():
    torch.manual_seed(0)
    names = {"inputs": torch.tensor([[1, 2, 3]])}
    [code] = [block for kind, block in blocks("harnesses.md") if kind == "python" and "custom_generate" in block]
    exec(compile(code, "harnesses.md", "exec"), names)
    assert names["ids"].shape == (1, 11)
    assert 39 not in names["ids"]
    page = (DOCS / "harnesses.md").read_text("utf-8")
    table = page[page.index("| argument |") : page.index("- **Generation.**")]
    assert set(re.findall(r"`(\w+)`", table)) >= DECODING | PLACEMENT | {"pretrained", "scorer", "block", "max_length"}
