"""`unmask env`: facts about this machine and installation."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from unmask import environment
from unmask.cli import options
from unmask.cli.boundary import print_json
from unmask.errors import UnmaskError
from unmask.version import __version__

PACKAGES = ("torch", "numpy", "safetensors", "tokenizers", "transformers", "math-verify", "matplotlib", "ray")


def env(json: options.Json = False) -> None:
    """Show versions, device, determinism, sandbox and data, to report what ran where.

    \b
    Examples:
      unmask env
      unmask env --json
    """
    facts = _facts()
    if json:
        print_json(facts)
        return
    for name, value in facts.items():
        print(f"{name:<14} {'-' if value is None else value}")


def _facts() -> dict[str, Any]:
    import torch

    from unmask.tasks import data

    gpu = torch.cuda.is_available()
    return {
        "unmask": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        **{name: _version(name) for name in PACKAGES},
        "device": torch.cuda.get_device_name() if gpu else "cpu",
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "deterministic": environment.deterministic(),
        "sandbox": _sandbox(),
        "data": os.environ.get(data.VARIABLE),
        "data_found": ", ".join(_tasks_with_data(os.environ.get(data.VARIABLE))) or None,
    }


def _sandbox() -> str | None:
    """Return what programs would run in; None if there is no sandbox."""
    from unmask.tasks.sandbox.run import sandbox_method

    try:
        return sandbox_method()
    except UnmaskError:
        return None


def _tasks_with_data(folder: str | None) -> list[str]:
    """Return the tasks whose files are all in the data folder."""
    from unmask.tasks import data, task

    found = []
    for name in task if folder else ():
        values = [each for value in vars(task.find(name)).values() for each in _members(value)]
        files = [value.local for value in values if isinstance(value, data.Dataset)]
        if files and all(Path(folder or "", file).is_file() for file in files):
            found.append(name)
    return found


def _members(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else [value]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
