"""`python -m tools.layers`: write the diagram of imports in docs/design.md from the layers in pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

PAGE, PROJECT = Path("docs/design.md"), Path("pyproject.toml")
REGION = re.compile(r"(<!-- layers -->\n```\n).*?(```\n<!-- /layers -->)", re.DOTALL)


def diagram(layers: Sequence[str]) -> str:
    """Return the layers from the top, each importing only those after it; packages of one layer stand side by side."""
    names = [layer.replace("unmask.", "").replace(" | ", "\x00·\x00") for layer in layers]
    lines = wrap(" → ".join(names).replace(" → ", " →\x00"), 90, subsequent_indent="    ", break_long_words=False)
    return "\n".join(line.replace("\x00", " ") for line in lines) + "\n"


def main() -> None:
    contracts = tomllib.loads(PROJECT.read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    drawn = diagram(contracts[0]["layers"])
    page = PAGE.read_text("utf-8")
    PAGE.write_text(REGION.sub(lambda region: region[1] + drawn + region[2], page), "utf-8")


if __name__ == "__main__":
    main()
