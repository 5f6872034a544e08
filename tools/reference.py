"""`python -m tools.reference`: write docs/reference and the lists that `unmask list` shows, from the code."""

import argparse
import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import unmask
from unmask.cli.app import commands
from unmask.cli.list import KINDS, LISTS, registered_entries
from unmask.core import decoder
from unmask.describe import FieldText, class_fields, describe_entry
from unmask.integrations import compat
from unmask.policies.likelihood import likelihood
from unmask.registry import Registry
from unmask.runs.scoring import scorer

FOLDER = Path("docs/reference")
NOTE = "<!-- Written by `make docs` from the code: change the code instead. -->\n"


def pages() -> dict[str, str]:
    return {"api.md": api_page(), "commands.md": commands_page(), "decoders.md": decoders_page()}


def api_page() -> str:
    text = [NOTE, "# From Python\n", "Everything below is an attribute of `unmask`, imported on first use.\n"]
    named = [(f"unmask.{name}", getattr(unmask, name)) for name in unmask.__all__ if name != "__version__"]
    for name, thing in [*named, ("unmask.integrations.compat.generate", compat.generate)]:
        text.append(f"## `{name}`\n")
        if inspect.isclass(thing):
            text.append(_class(thing))
        else:
            text.append(f"```python\n{_signature(name.rpartition('.')[2], thing)}\n```\n")
            text.append(_paragraphs(thing) + "\n")
    return "\n".join(text)


def commands_page() -> str:
    text = [NOTE, "# Commands\n"]
    text.append("Answers go to standard output, everything else to standard error. Bad input exits with code 2.\n")
    for path, command in _commands("unmask", commands()):
        text.append(f"## `{path}`\n")
        text.append(_help(command.help or ""))
        rows = [_option(parameter) for parameter in command.params if parameter.name != "help"]
        if rows:
            text.append("| argument or option | default | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(text)


def decoders_page() -> str:
    text = [
        NOTE,
        "# Decoders\n",
        "Write a decoder as `name(setting=value, …)`, for example `ots(beams=4, block=32)`.\n",
    ]
    text += _entry_lines(decoder)
    text.append("# Likelihoods\n\nThe values of `likelihood=…`, for example `ots(likelihood=interleaved(combs=2))`.\n")
    text += _entry_lines(likelihood)
    text.append("# Scorers\n\nThe values of `unmask.score(…, scorer=…)`, beside every likelihood above.\n")
    return "\n".join(text + _entry_lines(scorer))


def _entry_lines(registry: Registry[Any]) -> list[str]:
    text: list[str] = []
    for name in registry:
        about = describe_entry(registry, name)
        also = f" (also `{'`, `'.join(about['aliases'])}`)" if about["aliases"] else ""
        text.append(f"## `{name}`{also}\n\n{about['summary']}\n")
        if about["settings"]:
            text.append("| setting | default | meaning |\n|---|---|---|")
            for setting in about["settings"]:
                default = "" if setting["default"] is None else f"`{setting['default']}`"
                text.append(
                    f"| `{setting['name']}: {_cell(setting['type'])}` | {default} | {_cell(setting['meaning'])} |"
                )
            text.append("")
    return text


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        if hasattr(inner, "commands"):
            yield from _commands(f"{path} {name}", inner)
        else:
            yield f"{path} {name}", inner


def _help(text: str) -> str:
    """Examples follow click's `\\b`, which keeps their lines as they are."""
    words, _, examples = inspect.cleandoc(text).partition("\b")
    lines = [line.strip() for line in examples.strip().splitlines() if line.strip() and "Examples:" not in line]
    shown = "```sh\n" + "\n".join(lines) + "\n```\n" if lines else ""
    return " ".join(words.split()) + "\n\n" + shown


def _option(parameter: Any) -> str:
    flags = parameter.opts if parameter.param_type_name == "option" else [parameter.metavar or parameter.name.upper()]
    metavar = f" {parameter.metavar}" if parameter.metavar and parameter.param_type_name == "option" else ""
    default = "required" if parameter.required else _default(parameter.default)
    return f"| `{_cell(', '.join(flags) + metavar)}` | {default} | {_cell(getattr(parameter, 'help', '') or '')} |"


def _default(value: Any) -> str:
    return "" if value is None or value is False or callable(value) else f"`{value}`"


def _class(owner: type) -> str:
    text = _paragraphs(owner) + "\n"
    if not dataclasses.is_dataclass(owner):
        return text
    written = class_fields(owner)
    for field in dataclasses.fields(owner):
        line = written.get(field.name, FieldText(""))
        text += f"\n- `{field.name}: {line.annotation}`" + (f" — {line.comment}" if line.comment else "")
    for name, member in vars(owner).items():
        doc = inspect.getdoc(member)
        if doc and not name.startswith("_") and (isinstance(member, property | classmethod) or callable(member)):
            text += f"\n- `{name}{'' if isinstance(member, property) else '()'}` — {doc.splitlines()[0]}"
    return text + "\n"


def _paragraphs(thing: Any) -> str:
    doc = inspect.getdoc(thing) or ""
    if inspect.isclass(thing) and (doc.startswith(f"{thing.__name__}(") or not vars(thing).get("__doc__")):
        doc = sys.modules[thing.__module__].__doc__ or ""
        return doc.strip().splitlines()[0]
    return doc


def _signature(name: str, function: Callable[..., Any]) -> str:
    lines, keyword = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword:
            lines.append("    *,")
            keyword = True
        default = "" if parameter.default is parameter.empty else f" = {_value(parameter.default)}"
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        lines.append(f"    {stars}{parameter.name}: {_annotation(parameter.annotation)}{default},")
    return f"{name}(\n" + "\n".join(lines) + f"\n) -> {_annotation(inspect.signature(function).return_annotation)}"


def _annotation(hint: Any) -> str:
    return hint if isinstance(hint, str) else re.sub(r"(\w+\.)+", "", getattr(hint, "__name__", str(hint)))


def _value(value: Any) -> str:
    return value.__qualname__ if callable(value) else repr(value)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def lists() -> str:
    """Return what `unmask list` shows, so that it can be shown without loading torch."""
    return json.dumps({kind: registered_entries(kind) for kind in KINDS}, indent=1, ensure_ascii=False) + "\n"


def main(folder: Path = FOLDER, list_file: Path = LISTS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    list_file.write_text(lists(), encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.reference", description="Write the reference pages.")
    parser.add_argument("--pages", type=Path, default=FOLDER, metavar="DIR", dest="folder", help="the pages")
    parser.add_argument("--list-file", type=Path, default=LISTS, metavar="FILE", help="what `unmask list` shows")
    return parser.parse_args()


if __name__ == "__main__":
    main(**vars(_arguments()))
