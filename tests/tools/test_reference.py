"""The reference pages match the code."""

import json
import subprocess
import sys
from pathlib import Path

from unmask.cli.app import HELP

ROOT = Path(__file__).parents[2]


def test_the_reference_pages_are_not_stale(tmp_path: Path):
    pages, helps = tmp_path / "pages", tmp_path / "help.json"
    subprocess.run([sys.executable, "-m", "tools.reference", str(pages), str(helps)], check=True, cwd=ROOT)
    for page in pages.iterdir():
        kept = ROOT / "docs" / "reference" / page.name
        assert kept.exists(), f"{page.name} is missing: run `make docs`"
        assert kept.read_text("utf-8") == page.read_text("utf-8"), f"{page.name} is stale: run `make docs`"
    assert _words(HELP) == _words(helps), "help.json is stale: run `make docs`"


def _words(path: Path) -> dict[str, list[str]]:
    """Line breaks depend on the version of the terminal library."""
    return {name: text.split() for name, text in json.loads(path.read_text("utf-8")).items()}
