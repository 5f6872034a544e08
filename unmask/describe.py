"""Descriptions of classes from their source: the first paragraph, the fields, and the comment beside each field.

`source_fields` reads a class without importing its module, so that the command line can build its options from settings
dataclasses before torch is loaded.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib.util
import inspect
import io
import re
import sys
import textwrap
import tokenize
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from unmask.registry import Registry


@dataclass(frozen=True)
class FieldText:
    """A field of a class as it is written."""

    annotation: str
    default: Any = None  # the literal after the equals sign; None if there is none or it is computed
    comment: str = ""
    choices: tuple[str, ...] = ()  # the words of a Literal annotation or of an alias for one


@functools.cache
def source_fields(module: str, name: str) -> dict[str, FieldText]:
    """Return the fields of the class `name`, from the source of `module`, which is not imported."""
    text, tree = _module_source(module)
    (owner,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    aliases = {node.targets[0].id: node.value for node in _assignments(tree)}  # type: ignore[attr-defined]
    return _fields(owner, _comments(text), aliases)


def source_constant(module: str, name: str) -> Any:
    """Return the literal that `module` assigns to `name`, without importing it."""
    _, tree = _module_source(module)
    (value,) = (node.value for node in _assignments(tree) if node.targets[0].id == name)  # type: ignore[attr-defined]
    return ast.literal_eval(value)


@functools.cache
def _module_source(module: str) -> tuple[str, ast.Module]:
    found = importlib.util.find_spec(module)
    text = Path(str(found and found.origin)).read_text(encoding="utf-8")
    return text, ast.parse(text)


def _assignments(tree: ast.Module) -> list[ast.Assign]:
    return [node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)]


def _comments(text: str) -> dict[int, str]:
    """Return the comment of each line that has one."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}


def _fields(owner: ast.ClassDef, comments: dict[int, str], aliases: dict[str, ast.expr]) -> dict[str, FieldText]:
    found = {}
    for node in owner.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            comment = next((comments[line] for line in lines if line in comments), "")
            found[node.target.id] = FieldText(
                ast.unparse(node.annotation).replace("'", '"'),
                _literal(node.value),
                comment,
                _choices(node.annotation, aliases),
            )
    return found


def _literal(value: ast.expr | None) -> Any:
    try:
        return None if value is None else ast.literal_eval(value)
    except ValueError:
        return None


def _choices(annotation: ast.expr, aliases: dict[str, ast.expr]) -> tuple[str, ...]:
    if isinstance(annotation, ast.BinOp):  # `… | None`
        annotation = annotation.left
    annotation = aliases.get(ast.unparse(annotation), annotation)
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Literal":
        words = ast.literal_eval(annotation.slice)
        return words if isinstance(words, tuple) else (words,)
    return ()


def class_fields(entry: type) -> dict[str, FieldText]:
    """Return the fields of a class and its bases; a comment of a base stands where the class writes none."""
    every: dict[str, FieldText] = {}
    for owner in reversed(entry.__mro__):
        try:
            text = textwrap.dedent(inspect.getsource(owner))
        except (OSError, TypeError):  # builtins, and classes typed into a shell
            continue
        (node,) = ast.parse(text).body
        assert isinstance(node, ast.ClassDef)
        for name, written in _fields(node, _comments(text), {}).items():
            kept = every[name].comment if name in every else ""
            every[name] = dataclasses.replace(written, comment=written.comment or kept)
    return every


def describe_entry(registry: Registry[Any], name: str) -> dict[str, Any]:
    """Return a registered class as plain values: name, aliases, summary and settings."""
    entry = registry.find(name)
    hints, written = typing.get_type_hints(entry), class_fields(entry)
    settings = []
    for field in dataclasses.fields(entry):
        text = written.get(field.name, FieldText(""))
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        words = typing.get_args(hints[field.name]) if typing.get_origin(hints[field.name]) is Literal else ()
        settings.append(
            {
                "name": field.name.replace("_", "-"),
                "type": _type(text.annotation),
                "default": None if default is dataclasses.MISSING else registry.text(default),
                "meaning": text.comment,
                "choices": list(words) or None,
            }
        )
    return {"name": name, "aliases": registry.aliases(name), "summary": _summary(entry), "settings": settings}


def _summary(entry: type) -> str:
    """Return the first paragraph of the class's docstring, or of its module's if it has none."""
    text = vars(entry).get("__doc__") or ""
    if not text or text.startswith(f"{entry.__name__}("):  # written by dataclasses
        text = sys.modules[entry.__module__].__doc__ or ""
    return " ".join(text.strip().split("\n\n")[0].split())


def _type(annotation: str) -> str:
    """Return an annotation as users write values: words separated by bars, `none` for None."""
    plain = re.sub(r"Literal\[(.+)\]", lambda match: match.group(1).replace('"', "").replace(", ", " | "), annotation)
    return plain.replace(" | None", " | none")
