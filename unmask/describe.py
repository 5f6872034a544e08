"""Registered classes described from their source: first sentence, settings, and the comment beside each setting."""

import dataclasses
import inspect
import re
import sys
import typing
from typing import Any, Literal

from unmask.registry import Registry

_FIELD = re.compile(r"^    (\w+): (.+?)(?: = .+?)?(?:  # (.+))?$", re.MULTILINE)


def describe_entry(registry: Registry[Any], name: str) -> dict[str, Any]:
    entry = registry.find(name)
    comments, choices = field_comments(entry), _choices(entry)
    return {
        "name": name,
        "aliases": registry.aliases(name),
        "summary": _summary(entry),
        "settings": [
            _setting(registry, comments, field) | {"choices": choices.get(field.name)}
            for field in dataclasses.fields(entry)
        ],
    }


def _choices(entry: type) -> dict[str, list[str]]:
    """The words that a field of a literal type takes."""
    hints = typing.get_type_hints(entry)
    return {name: list(typing.get_args(hint)) for name, hint in hints.items() if typing.get_origin(hint) is Literal}


def _summary(entry: type) -> str:
    """The first paragraph of the class's docstring, or of its file's where it has none."""
    text = vars(entry).get("__doc__") or ""
    if not text or text.startswith(f"{entry.__name__}("):  # written by dataclasses
        text = sys.modules[entry.__module__].__doc__ or ""
    return " ".join(text.strip().split("\n\n")[0].split())


def field_comments(entry: type) -> dict[str, tuple[str, str]]:
    """The written type of each field and the comment beside it; a subclass's comments replace its parent's."""
    comments: dict[str, tuple[str, str]] = {}
    for owner in reversed(entry.__mro__):
        for name, kind, comment in _FIELD.findall(_source(owner)):
            comments[name] = (kind, comment or comments.get(name, ("", ""))[1])
    return comments


def _setting(registry: Registry[Any], comments: dict[str, tuple[str, str]], field: Any) -> dict[str, Any]:
    kind, meaning = comments.get(field.name, ("", ""))
    default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    return {
        "name": field.name.replace("_", "-"),
        "type": _plain(kind),
        "default": None if default is dataclasses.MISSING else registry.text(default),
        "meaning": meaning,
    }


def _plain(kind: str) -> str:
    kind = re.sub(r"Literal\[(.+)\]", lambda match: match.group(1).replace('"', "").replace(", ", " | "), kind)
    return kind.replace(" | None", " | none")


def _source(owner: type) -> str:
    try:
        return inspect.getsource(owner)
    except (OSError, TypeError):
        return ""
