"""The commands and the code of docs/models.md run as they stand there."""

import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from unmask.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "models.md"


def test_the_page_about_models_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    for kind, block in blocks:
        if kind == "python" and ("unmask.generate" not in block or find_spec("unmask.api")):
            exec(compile(block, str(PAGE), "exec"), {})
        for line in block.splitlines() if kind == "sh" else ():
            monkeypatch.setattr(sys, "argv", shlex.split(line))
            with pytest.raises(SystemExit) as ended:
                main()
            assert not ended.value.code, capsys.readouterr().err
    assert (tmp_path / "my-copy" / "config.json").exists()
