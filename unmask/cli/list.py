"""`unmask list`: what is registered, with its settings."""

import json as jsons
from typing import Annotated, Any

import typer

import unmask.decoders
import unmask.models
import unmask.tasks  # noqa: F401  imported to register their classes
from unmask.cli import options
from unmask.cli.app import app
from unmask.core import decoder
from unmask.entries import describe_entry
from unmask.errors import UnmaskError, nearest
from unmask.experiments import EXPERIMENTS
from unmask.models import model
from unmask.policies.likelihood import likelihood
from unmask.registry import Registry
from unmask.runs.scoring import way
from unmask.tasks import task

KINDS: dict[str, Registry[Any]] = {
    "decoders": decoder,
    "likelihoods": likelihood,
    "models": model,
    "tasks": task,
    "ways": way,
}


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(metavar="|".join([*KINDS, "experiments"]), help="Which of them.")],
    json: options.Json = False,
) -> None:
    """List what is registered, with settings and defaults.

    \b
    Examples:
      unmask list decoders
      unmask list models --json
    """
    if what not in (*KINDS, "experiments"):
        raise UnmaskError(f"there is no list of {what!r}: {nearest(what, [*KINDS, 'experiments'])}")
    entries = experiments() if what == "experiments" else [describe_entry(KINDS[what], name) for name in KINDS[what]]
    if json:
        print(jsons.dumps(entries, ensure_ascii=False))
        return
    for entry in entries:
        print(lines(entry))


def experiments() -> list[dict[str, Any]]:
    return [
        {"name": each.name, "aliases": [], "summary": f"{each.question.strip()} ({each.source})", "settings": []}
        for each in EXPERIMENTS.values()
    ]


def lines(entry: dict[str, Any]) -> str:
    name = f"{entry['name']} ({', '.join(entry['aliases'])})" if entry["aliases"] else entry["name"]
    text = [f"{name}: {entry['summary']}"]
    for setting in entry["settings"]:
        default = f"={setting['default']}" if setting["default"] is not None else ""
        head = f"    {setting['name']}{default}"
        text.append(f"{head:<32} {setting['meaning']}".rstrip())
    return "\n".join(text)
