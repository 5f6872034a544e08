"""The commands and the code of docs/caching.md run as they stand there."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from unmask.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "caching.md"


@pytest.mark.slow
def test_the_page_about_caching_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert {kind for kind, _ in blocks} == {"sh", "python"}
    for kind, block in blocks:
        if kind == "python":
            exec(compile(block, str(PAGE), "exec"), {})
        for line in block.splitlines() if kind == "sh" else ():
            monkeypatch.setattr(sys, "argv", shlex.split(line))
            with pytest.raises(SystemExit) as ended:
                main()
            assert not ended.value.code, capsys.readouterr().err
