"""What a registered thing says of itself: its first sentence, its settings, and the comment beside each of them."""

import dataclasses
import inspect
import re
import sys
from typing import Any

from unmask.registry import Registry

_FIELD = re.compile(r"^    (\w+): (.+?)(?: = .+?)?(?:  # (.+))?$", re.MULTILINE)


def describe(registry: Registry[Any], name: str) -> dict[str, Any]:
    made = registry.find(name)
    return {
        "name": name,
        "aliases": registry.aliases(name),
        "summary": _summary(made),
        "settings": [_setting(registry, made, field) for field in dataclasses.fields(made)],
    }


def _summary(made: type) -> str:
    """Of the class where it has words of its own, else of its file."""
    said = vars(made).get("__doc__") or ""
    if not said or said.startswith(f"{made.__name__}("):  # what dataclasses write by themselves
        said = sys.modules[made.__module__].__doc__ or ""
    return " ".join(said.strip().split("\n\n")[0].split())


def field_comments(made: type) -> dict[str, tuple[str, str]]:
    """Of each field its written type and the comment beside it; a subclass's own words come before its parent's."""
    found: dict[str, tuple[str, str]] = {}
    for owner in reversed(made.__mro__):
        for name, kind, comment in _FIELD.findall(_source(owner)):
            found[name] = (kind, comment or found.get(name, ("", ""))[1])
    return found


def _setting(registry: Registry[Any], made: type, field: Any) -> dict[str, Any]:
    kind, meaning = field_comments(made).get(field.name, ("", ""))
    default = _default(field)
    return {
        "name": field.name.replace("_", "-"),
        "type": _plain(kind),
        "default": None if default is dataclasses.MISSING else registry.text(default),
        "meaning": meaning,
    }


def _default(field: Any) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _plain(kind: str) -> str:
    kind = re.sub(r"Literal\[(.+)\]", lambda found: found.group(1).replace('"', "").replace(", ", " | "), kind)
    return kind.replace(" | None", " | none")


def _source(owner: type) -> str:
    try:
        return inspect.getsource(owner)
    except (OSError, TypeError):
        return ""
