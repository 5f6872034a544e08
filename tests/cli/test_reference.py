"""The reference pages are what the code says now."""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "reference"


def test_the_reference_pages_are_not_stale(tmp_path: Path):
    subprocess.run([sys.executable, "-m", "unmask.cli.reference", str(tmp_path)], check=True)
    for page in tmp_path.iterdir():
        kept = FOLDER / page.name
        assert kept.exists(), f"{page.name} is missing: run `make docs`"
        assert kept.read_text("utf-8") == page.read_text("utf-8"), f"{page.name} is stale: run `make docs`"
