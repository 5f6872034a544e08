"""Write `requirements.lock`: every package that development, CI and releases install, with its version and hashes.

    python -m tools.lock            # keep the locked versions that still satisfy pyproject.toml
    python -m tools.lock --upgrade  # use the newest versions

torch is left out: its build depends on the machine, and its version is pinned in `constraints.txt`. The dependencies of
torch, except drivers, are in the lock. This needs `uv`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
OWN = re.compile(r"unmask\[(.+)\]")
DRIVERS = re.compile(r"nvidia|cuda|triton")
HEADER = "# Made by `make lock`. torch is pinned in constraints.txt.\n"


def requirements() -> list[str]:
    """Return the requirements of pyproject.toml, with the extra `dev` and the build backend, without torch itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"], *_extra("dev", extras)]
    wanted += [each for each in requires("torch") or [] if "extra ==" not in each and not DRIVERS.match(each)]
    return [each for each in wanted if not re.match(r"torch\b", each)]


def _extra(name: str, extras: dict[str, list[str]]) -> list[str]:
    parts: list[str] = []
    for each in extras[name]:
        own = OWN.fullmatch(each)
        parts += [part for other in own[1].split(",") for part in _extra(other, extras)] if own else [each]
    return parts


def main() -> None:
    options = ["--quiet", "--generate-hashes", "--universal", "--no-header", "--no-annotate", "--python-version=3.11"]
    compile_ = ["uv", "pip", "compile", *options, *sys.argv[1:], "--output-file", str(LOCK), "-"]
    subprocess.run(compile_, input="\n".join(requirements()), text=True, check=True, cwd=ROOT)
    LOCK.write_text(HEADER + LOCK.read_text("utf-8").removeprefix(HEADER), "utf-8")


if __name__ == "__main__":
    main()
