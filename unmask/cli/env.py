"""`unmask env`: facts about this machine and installation."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import unmask
from unmask import environment
from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.boundary import print_json
from unmask.errors import UnmaskError
from unmask.tasks import data, task
from unmask.tasks.sandbox.run import sandbox_method

PACKAGES = ("torch", "numpy", "safetensors", "tokenizers", "transformers", "math-verify", "matplotlib", "ray")


@app.command()
def env(json: options.Json = False) -> None:
    """Show versions, device, determinism, sandbox and data, to report what ran where.

    \b
    Examples:
      unmask env
      unmask env --json
    """
    values = facts()
    if json:
        print_json(values)
        return
    for name, value in values.items():
        print(f"{name:<14} {'-' if value is None else value}")


def facts() -> dict[str, Any]:
    gpu = torch.cuda.is_available()
    return {
        "unmask": unmask.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        **{name: _version(name) for name in PACKAGES},
        "device": torch.cuda.get_device_name() if gpu else "cpu",
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "deterministic": environment.deterministic(),
        "sandbox": _sandbox(),
        "data": os.environ.get(data.VARIABLE),
        "data_found": ", ".join(_tasks_with_data()) or None,
    }


def _sandbox() -> str | None:
    """What programs would run in; None where there is no sandbox."""
    try:
        return sandbox_method()
    except UnmaskError:
        return None


def _tasks_with_data() -> list[str]:
    """Tasks whose files are all in the data folder."""
    folder = os.environ.get(data.VARIABLE)
    if not folder:
        return []
    files = {name: _files(task.find(name)) for name in task}
    return [name for name, some in files.items() if some and all((Path(folder) / file).is_file() for file in some)]


def _files(entry: type) -> list[str]:
    values = [
        each for value in vars(entry).values() for each in (value.values() if isinstance(value, dict) else [value])
    ]
    return [value.local for value in values if isinstance(value, data.Dataset)]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
