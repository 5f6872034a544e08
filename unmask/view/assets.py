"""The files of the pages, put together: one style and one script, which the page's content policy names by hash."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from unmask.version import __version__

FOLDER = Path(__file__).parent
SHARED = ("dom", "words", "run", "canvases", "charts", "tree", "branches", "sentences", "player", "viewer", "page")


def script(*more: str, start: str) -> str:
    """Files share one scope that nothing outside can reach; `start` is what runs."""
    files = "\n".join(read(f"js/{name}.js") for name in (*SHARED, *more))
    return f'"use strict";\n(() => {{\n{files}\n{start}.catch((error) => failed(error));\n}})();\n'


def compose(name: str, style: str, code: str, parts: Mapping[str, str]) -> str:
    """A page from its template. `parts` are markup."""
    known = {
        **parts,
        "style": style,
        "style-hash": content_hash(style),
        "script": code,
        "script-hash": content_hash(code),
        "help": read("help.html"),
        "version": __version__,
    }
    return re.sub(r"\{\{([a-z-]+)\}\}", lambda match: known[match[1]], read(name))


def read(name: str) -> str:
    return FOLDER.joinpath(name).read_text(encoding="utf-8")


def content_hash(text: str) -> str:
    """As content policies name a style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
