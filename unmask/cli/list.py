"""The entries of `unmask list`, from the code itself. `unmask list`: what is registered, with its settings."""

import json as jsons
import re
import shutil
import sys
import textwrap
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer

import unmask.decoders
import unmask.models
import unmask.tasks  # noqa: F401  imported to register their classes
from unmask.cli.app import app
from unmask.cli.boundary import print_json
from unmask.cli.options import Json
from unmask.core import decoder
from unmask.describe import describe_entry
from unmask.errors import UnmaskError, nearest
from unmask.experiments import EXPERIMENTS
from unmask.models import model
from unmask.models.families.family import family
from unmask.policies.likelihood import likelihood
from unmask.registry import Registry
from unmask.runs.scoring import scorer
from unmask.tasks import task

REGISTRIES: dict[str, Registry[Any]] = {
    "decoders": decoder,
    "likelihoods": likelihood,
    "models": model,
    "tasks": task,
    "ways": scorer,
}


def entries(what: str) -> list[dict[str, Any]]:
    if what == "experiments":
        return [_plain(each.name, f"{each.question.strip()} ({each.source})") for each in EXPERIMENTS.values()]
    listed = [describe_entry(REGISTRIES[what], name) for name in REGISTRIES[what]]
    return listed + families() if what == "models" else listed


def families() -> list[dict[str, Any]]:
    """Checkpoints are named by hub id or folder: each family with an id that works."""
    return [
        _plain(name, f"a family of checkpoints, each named by its folder or hub id, such as {cls.example}")
        | {"example": cls.example}
        for name in family
        for cls in [family.find(name)]
    ]


def _plain(name: str, summary: str) -> dict[str, Any]:
    return {"name": name, "aliases": [], "summary": summary, "settings": []}


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
