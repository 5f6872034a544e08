"""`unmask list`: what is registered, with its settings."""

import json as jsons
import re
import shutil
import sys
import textwrap
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask.cli.app import app
from unmask.cli.edge import print_json
from unmask.cli.run_options import Json
from unmask.errors import UnmaskError, nearest

KINDS = ("decoders", "likelihoods", "models", "tasks", "ways", "experiments")
COLUMN = 33  # where the meaning of a setting begins
LISTS = Path(__file__).with_name("lists.json")  # written by `make docs`, so that a list is shown before torch is loaded


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(metavar="|".join(KINDS), help="Which of them.")],
    json: Json = False,
) -> None:
    """List what is registered, with settings and defaults.

    \b
    Examples:
      unmask list decoders
      unmask list models --json
    """
    if what not in KINDS:
        raise UnmaskError(f"there is no list of {what!r}: {nearest(what, KINDS)}")
    entries = known(what)
    if json:
        print_json(entries)
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for entry in entries:
        print(lines(entry, width))


def known(what: str) -> list[dict[str, Any]]:
    """As written by `make docs`; other packages that register something have to be imported."""
    groups = ["models", "families"] if what == "models" else [what]
    if LISTS.exists() and not any(entry_points(group=f"unmask.{group}") for group in groups):
        return jsons.loads(LISTS.read_text(encoding="utf-8"))[what]
    from unmask.cli.listing import entries

    return entries(what)


def lines(entry: dict[str, Any], width: int | None = None) -> str:
    """A line for the entry and one for each setting, wrapped at this width."""
    name = f"{entry['name']} ({', '.join(entry['aliases'])})" if entry["aliases"] else entry["name"]
    text = [f"{name}: {entry['summary']}"]
    for setting in entry["settings"]:
        default = f"={setting['default']}" if setting["default"] is not None else ""
        head = f"    {setting['name']}{default}"
        text.append(f"{head:<{COLUMN - 1}} {_meaning(**setting)}".rstrip())
    return "\n".join(text if width is None else [_wrapped(line, width) for line in text])


def _meaning(meaning: str, choices: list[str] | None, **_: Any) -> str:
    if not choices:
        return meaning
    listed = f"{', '.join(choices[:-1])} or {choices[-1]}"
    return f"{meaning} ({listed})" if meaning else listed


def _wrapped(line: str, width: int) -> str:
    """At words; what follows is indented like the meanings, where the terminal has room for that."""
    indent = 4 if not line.startswith(" ") else COLUMN if width >= 2 * COLUMN else 8
    if width < 2 * COLUMN:
        line = re.sub(r"(?<=\S) {2,}", "  ", line)
    return textwrap.fill(line, max(width, 20), subsequent_indent=" " * indent, break_on_hyphens=False)
