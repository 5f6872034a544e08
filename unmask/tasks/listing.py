"""Reads a program from an output: a fenced block, else the longest span of lines that parses."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence
from itertools import zip_longest

LONGEST = 20_000  # characters of a program that are read
TRIES = 300  # attempts to parse a span
_FENCE = re.compile(r"^[ \t]{0,20}```[ \t]{0,20}(\w{0,20})[ \t]{0,20}$", re.MULTILINE)
_PYTHON = ("", "python", "python3", "py")
_OPENING = re.compile(r"(?:def|class|import|from|async|@)\b|@|[A-Za-z_]\w{0,99} *=[^=]")

warnings.filterwarnings("ignore", module="<program>")  # warnings about a model's code do not concern the user


def parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text, "<program>")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def fences(text: str) -> list[str]:
    """The Python blocks between ``` lines; the last may be cut off by the end of the output."""
    fences = list(_FENCE.finditer(text))
    blocks = [
        text[opening.end() : closing.start() if closing else len(text)].strip("\n")
        for opening, closing in zip_longest(fences[::2], fences[1::2])
        if opening[1].lower() in _PYTHON
    ]
    return [block for block in blocks if block.strip()]


def last_defining(blocks: Sequence[str], entry: str | None) -> str:
    """The last block that defines the entry point (without one, that defines anything), else the last block."""
    for block in reversed(blocks):
        names = defined(parse(block))
        if entry in names if entry else names:
            return block
    return blocks[-1]


def span(text: str) -> str | None:
    """The longest run of lines that parses and begins like a program."""
    lines = text[:LONGEST].expandtabs(4).split("\n")
    best, tries = "", TRIES
    for start, line in enumerate(lines):
        if not _OPENING.match(line):
            continue
        candidate, tries = _longest(lines[start:], tries)
        best = max(best, candidate, key=len)
        if tries <= 0:
            break
    return best or None


def head(text: str) -> str:
    """The longest beginning that parses."""
    return _longest(text[:LONGEST].split("\n"), TRIES)[0]


def _longest(lines: list[str], tries: int) -> tuple[str, int]:
    end = len(lines)
    while end and tries > 0:
        tries -= 1
        try:
            ast.parse("\n".join(lines[:end]), "<program>")
            return "\n".join(lines[:end]), tries
        except SyntaxError as error:
            end = min(end - 1, max((error.lineno or end) - 1, 0))
        except (ValueError, RecursionError, MemoryError):
            end //= 2
    return "", tries


def defined(tree: ast.Module | None) -> set[str]:
    """The names defined at a program's top level, without imports."""
    return {name for node in (tree.body if tree else ()) for name in _names(node)}


def reachable(text: str, entry: str) -> str:
    """Imports and the definitions that the entry point needs; the whole text if it does not define the entry point."""
    tree = parse(text)
    if tree is None or entry not in defined(tree):
        return text
    definitions: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        for name in _names(node):
            definitions.setdefault(name, []).append(node)
    kept: set[ast.stmt] = set()
    waiting = [entry]
    while waiting:
        for node in definitions.pop(waiting.pop(), []):
            if node not in kept:
                kept.add(node)
                waiting += used(node)
    return "\n\n".join(_text(text, node) for node in tree.body if node in kept or is_import(node)) + "\n"


def imports(text: str) -> str:
    tree = parse(text)
    return "\n".join(_text(text, node) for node in (tree.body if tree else ()) if is_import(node))


def is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def used(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def tidy(text: str) -> str:
    """The program without comments and with standard layout, so that equal programs vote together."""
    tree = parse(text)
    if tree is None:
        return text
    try:
        return ast.unparse(tree)
    except (RecursionError, ValueError):
        return text


def _names(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {name for target in targets for name in used(target)}
    return set()


def _text(text: str, node: ast.stmt) -> str:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return "\n".join(text.split("\n")[first - 1 : node.end_lineno])
