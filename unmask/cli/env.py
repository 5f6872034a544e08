"""`unmask env`: what this machine and this installation offer."""

import json as jsons
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

import unmask
from unmask import environment
from unmask.cli import options
from unmask.cli.app import app

PACKAGES = ("torch", "numpy", "safetensors", "tokenizers", "transformers", "math-verify", "matplotlib")


@app.command()
def env(json: options.Json = False) -> None:
    """Versions, device and determinism, for a report of what ran where.

    \b
    Examples:
      unmask env
      unmask env --json
    """
    found = facts()
    if json:
        print(jsons.dumps(found, ensure_ascii=False))
        return
    for name, value in found.items():
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
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
