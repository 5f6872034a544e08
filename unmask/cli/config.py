"""Options of a command from a TOML file: `--config run.toml`, and `--dump-config`, which writes one.

    model = "tiny"
    task = ["countdown"]
    decoder = ["low-confidence", "ots(beams=4)"]
    length = 64
    limit = 20
    out = "runs/first"

A key is an option's name without the dashes. What is typed beside `--config` comes before what the file says.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask.errors import UnmaskError, nearest


@dataclass(frozen=True)
class CommandOptions:
    """What `--config` becomes: the options of the command, whether they were typed, read from the file or left open."""

    context: Any

    @property
    def known(self) -> dict[str, Any]:
        """By the longest name without dashes, apart from those that are about the file itself."""
        named = {max(option.opts, key=len).lstrip("-"): option for option in self.context.command.params}
        return {name: option for name, option in named.items() if name not in ("config", "dump-config", "help")}

    def load(self, path: Path) -> None:
        """Makes the file's values the defaults of the options."""
        values = {key.replace("_", "-"): value for key, value in _read(path).items()}
        for key, value in values.items():
            if key not in self.known:
                raise UnmaskError(f"{str(path)!r} sets {key!r}, which is no option: {nearest(key, self.known)}")
            if any(isinstance(each, dict) for each in (value if isinstance(value, list) else [value])):
                raise UnmaskError(f"{key} in {str(path)!r} is a table: write a value, such as {key} = 'ots(beams=4)'")
        self.context.default_map = {
            self.known[key].name: [value] if self.known[key].multiple and not isinstance(value, list) else value
            for key, value in values.items()
        }

    def dump(self) -> str:
        """Every option that has a value, and the others as comments."""
        lines = []
        for name, option in self.known.items():
            value = self.context.params.get(option.name)
            empty = value is None or value == () or value == []
            lines.append(f"# {name} =  # {option.help}" if empty else f"{name} = {_toml(value)}")
        return "\n".join(lines)

    def require(self, *names: str) -> None:
        """Options that a file may give are not required by the parser."""
        for name in names:
            if not self.context.params.get(self.known[name].name):
                raise UnmaskError(f"Missing option '--{name}': give it here, or in a file by --config")


def _load(context, path):  # without annotations typer passes both
    options = CommandOptions(context)
    if path is not None and not context.resilient_parsing:
        options.load(path)
    return options


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise UnmaskError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnmaskError(f"{str(path)!r} is not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UnmaskError(f"{str(path)!r} is not TOML: {error}") from None


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


ConfigFile = Annotated[
    CommandOptions,
    typer.Option(
        "--config", metavar="FILE", is_eager=True, parser=Path, callback=_load, help="Read options from a TOML file."
    ),
]
DumpConfig = Annotated[
    bool, typer.Option("--dump-config", help="Print the options as a file for --config, and do nothing else.")
]
