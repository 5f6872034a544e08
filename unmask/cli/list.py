"""`unmask list`: what is registered, with its settings."""

import json as jsons
import re
import shutil
import sys
import textwrap
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from unmask.cli.boundary import print_json
from unmask.cli.options import Json

Kind = Literal["decoders", "likelihoods", "models", "tasks", "scorers", "experiments"]
KINDS: tuple[Kind, ...] = get_args(Kind)
COLUMN = 33  # column in which the meaning of a setting begins
LISTS = Path(__file__).with_name("lists.json")  # written by `make docs`, so that a list is shown without loading torch


def list_(
    kind: Annotated[Kind, typer.Argument(metavar="|".join(KINDS), help="What to list.")],
    json: Json = False,
) -> None:
    """List what is registered, with settings and defaults.

    \b
    Examples:
      unmask list decoders
      unmask list models --json
    """
    entries = listed(kind)
    if json:
        print_json(entries)
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for entry in entries:
        print(entry_lines(entry, width))


def listed(what: Kind) -> list[dict[str, Any]]:
    """Return the stored list, or the list from the code if packages with entry points may add to it."""
    groups = ["models", "families"] if what == "models" else [what]
    if LISTS.exists() and not any(entry_points(group=f"unmask.{group}") for group in groups):
        return jsons.loads(LISTS.read_text(encoding="utf-8"))[what]
    return registered_entries(what)


def registered_entries(what: Kind) -> list[dict[str, Any]]:
    """Return the entries of a list from the code, which loads torch."""
    import unmask.decoders
    import unmask.models  # noqa: F401  imported to register their classes
    from unmask.core import decoder
    from unmask.describe import describe_entry
    from unmask.experiments import EXPERIMENTS
    from unmask.models import model
    from unmask.models.families.family import family
    from unmask.policies.likelihood import likelihood
    from unmask.runs.scoring import scorer
    from unmask.tasks import task

    if what == "experiments":
        return [_plain(each.name, f"{each.question.strip()} ({each.source})") for each in EXPERIMENTS.values()]
    registries = {"decoders": decoder, "likelihoods": likelihood, "models": model, "tasks": task, "scorers": scorer}
    entries = [describe_entry(registries[what], name) for name in registries[what]]
    if what == "models":
        examples = {name: family.find(name).example for name in family}
        summary = "a family of checkpoints, each named by its folder or hub id, such as"
        entries += [_plain(name, f"{summary} {example}", example=example) for name, example in examples.items()]
    return entries


def _plain(name: str, summary: str, **more: str) -> dict[str, Any]:
    return {"name": name, "aliases": [], "summary": summary, "settings": [], **more}


def entry_lines(entry: dict[str, Any], width: int | None = None) -> str:
    """Return a line for the entry and one for each setting, wrapped at this width."""
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
    words = f"{', '.join(choices[:-1])} or {choices[-1]}"
    return f"{meaning} ({words})" if meaning else words


def _wrapped(line: str, width: int) -> str:
    """Wrap at words; further lines are indented like the meanings if the terminal is wide enough."""
    indent = 4 if not line.startswith(" ") else COLUMN if width >= 2 * COLUMN else 8
    if width < 2 * COLUMN:
        line = re.sub(r"(?<=\S) {2,}", "  ", line)
    return textwrap.fill(line, max(width, 20), subsequent_indent=" " * indent, break_on_hyphens=False)
