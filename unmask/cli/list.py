"""`unmask list` and `unmask env`: what is registered, with its settings, and facts about this installation."""

import json as jsons
import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from unmask import environment
from unmask.cli.boundary import print_answer
from unmask.cli.options import Json
from unmask.errors import UnmaskError
from unmask.version import __version__

Kind = Literal["decoders", "likelihoods", "models", "tasks", "scorers", "checkers", "experiments"]
KINDS: tuple[Kind, ...] = get_args(Kind)
COLUMN = 33  # column in which the meaning of a setting begins
PACKAGES = ("torch", "numpy", "safetensors", "tokenizers", "transformers", "math-verify", "matplotlib", "ray")
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
    print_answer(json, entries, "\n".join(map(entry_lines, entries)))


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
    from unmask.tasks.checkers import checker

    if what == "experiments":
        return [_plain(each.name, f"{each.question.strip()} ({each.source})") for each in EXPERIMENTS.values()]
    registries = {"decoders": decoder, "likelihoods": likelihood, "models": model, "tasks": task, "scorers": scorer}
    registries |= {"checkers": checker}
    entries = [describe_entry(registries[what], name) for name in registries[what]]
    if what == "models":
        examples = {name: family.find(name).example for name in family}
        summary = "a family of checkpoints, each named by its folder or hub id, such as"
        entries += [_plain(name, f"{summary} {example}", example=example) for name, example in examples.items()]
    return entries


def _plain(name: str, summary: str, **more: str) -> dict[str, Any]:
    return {"name": name, "aliases": [], "summary": summary, "settings": [], **more}


def entry_lines(entry: dict[str, Any]) -> str:
    """Return a line for the entry and one for each setting."""
    name = f"{entry['name']} ({', '.join(entry['aliases'])})" if entry["aliases"] else entry["name"]
    text = [f"{name}: {entry['summary']}"]
    for setting in entry["settings"]:
        default = f"={setting['default']}" if setting["default"] is not None else ""
        head = f"    {setting['name']}{default}"
        text.append(f"{head:<{COLUMN - 1}} {_meaning(**setting)}".rstrip())
    return "\n".join(text)


def _meaning(meaning: str, choices: list[str] | None, **_: Any) -> str:
    if not choices:
        return meaning
    words = f"{', '.join(choices[:-1])} or {choices[-1]}"
    return f"{meaning} ({words})" if meaning else words


def env(json: Json = False) -> None:
    """Show versions, device, determinism, sandbox and data, to report what ran where.

    \b
    Examples:
      unmask env
      unmask env --json
    """
    facts = _facts()
    print_answer(
        json, facts, "\n".join(f"{name:<14} {'-' if value is None else value}" for name, value in facts.items())
    )


def _facts() -> dict[str, Any]:
    import torch

    from unmask.tasks import data

    folder = os.environ.get(data.VARIABLE)
    return {
        "unmask": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        **{name: _version(name) for name in PACKAGES},
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "deterministic": environment.deterministic(),
        "sandbox": _sandbox(),
        "data": folder,
        "data_found": ", ".join(_tasks_with_data(Path(folder))) or None if folder else None,
    }


def _version(package: str) -> str | None:
    with suppress(PackageNotFoundError):
        return version(package)


def _sandbox() -> str | None:
    """Return what programs would run in; None if there is no sandbox."""
    from unmask.tasks.sandbox.run import sandbox_method

    with suppress(UnmaskError):
        return sandbox_method()


def _tasks_with_data(folder: Path) -> Iterator[str]:
    """Yield the tasks whose files are all in the data folder."""
    from unmask.tasks import data, task

    for name in task:
        members = [value.values() if isinstance(value, dict) else [value] for value in vars(task.find(name)).values()]
        files = [each.local for values in members for each in values if isinstance(each, data.Dataset)]
        if files and all((folder / file).is_file() for file in files):
            yield name
