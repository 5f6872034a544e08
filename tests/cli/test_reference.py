"""The reference pages are what the code says now."""

import json
import subprocess
import sys
from pathlib import Path

from unmask.cli.app import HELP

FOLDER = Path(__file__).parents[2] / "docs" / "reference"


def test_the_reference_pages_are_not_stale(tmp_path: Path):
    pages, helps = tmp_path / "pages", tmp_path / "help.json"
    subprocess.run([sys.executable, "-m", "unmask.cli.reference", str(pages), str(helps)], check=True)
    for page in pages.iterdir():
        kept = FOLDER / page.name
        assert kept.exists(), f"{page.name} is missing: run `make docs`"
        assert kept.read_text("utf-8") == page.read_text("utf-8"), f"{page.name} is stale: run `make docs`"
    assert _words(HELP) == _words(helps), "help.json is stale: run `make docs`"


def _words(path: Path) -> dict[str, list[str]]:
    """Where lines break is the terminal library's affair."""
    return {name: text.split() for name, text in json.loads(path.read_text("utf-8")).items()}
