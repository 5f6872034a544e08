"""`unmask list`: what there is, with its settings."""

import json as jsons
from typing import Annotated, Any

import typer

import unmask.decoders
import unmask.models
import unmask.tasks  # noqa: F401  the rooms register what they hold
from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.describe import describe
from unmask.core import decoder
from unmask.errors import UnmaskError, nearest
from unmask.experiments import EXPERIMENTS
from unmask.models import model
from unmask.registry import Registry
from unmask.tasks import task

KINDS: dict[str, Registry[Any]] = {"decoders": decoder, "models": model, "tasks": task}


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(metavar="|".join([*KINDS, "experiments"]), help="Which of them.")],
    json: options.Json = False,
) -> None:
    """What there is, with its settings and their defaults.

    \b
    Examples:
      unmask list decoders
      unmask list models --json
    """
    if what not in (*KINDS, "experiments"):
        raise UnmaskError(f"there is no list of {what!r}: {nearest(what, [*KINDS, 'experiments'])}")
    found = experiments() if what == "experiments" else [describe(KINDS[what], name) for name in KINDS[what]]
    if json:
        print(jsons.dumps(found, ensure_ascii=False))
        return
    for one in found:
        print(lines(one))


def experiments() -> list[dict[str, Any]]:
    return [
        {"name": one.name, "aliases": [], "summary": f"{one.question.strip()} ({one.source})", "settings": []}
        for one in EXPERIMENTS.values()
    ]


def lines(one: dict[str, Any]) -> str:
    name = f"{one['name']} ({', '.join(one['aliases'])})" if one["aliases"] else one["name"]
    text = [f"{name}: {one['summary']}"]
    for setting in one["settings"]:
        default = f"={setting['default']}" if setting["default"] is not None else ""
        head = f"    {setting['name']}{default}"
        text.append(f"{head:<32} {setting['meaning']}".rstrip())
    return "\n".join(text)
