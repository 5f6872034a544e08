"""Reads a program from an output: a fenced block, else the longest span of lines that parses.

Parsing takes time in proportion to the text, also where it fails, so a reader may parse only so much text in all.
"""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Iterator, Sequence
from itertools import zip_longest

LONGEST = 20_000  # characters of a program that are read
PARSED = 6 * LONGEST  # characters that a search for a program may parse in all
_FENCE = re.compile(r"^[ \t]{0,20}```[ \t]{0,20}(\w{0,20})[ \t]{0,20}$", re.MULTILINE)
_PYTHON = ("", "python", "python3", "py")
_OPENING = re.compile(
    r"(?:async +)?def +\w{1,99} *\(|class +\w{1,99} *[:(]|@\w|if |try:|for |with "
    r"|import +\w|from +[\w.]{1,99} +import\b|[A-Za-z_]\w{0,99} *=[^=]"
)
_ODD_SPACES = str.maketrans({"\ufeff": None, "\u200b": None} | dict.fromkeys("\u00a0\u2007\u202f\u3000", " "))

warnings.filterwarnings("ignore", module="<program>")  # warnings about a model's code do not concern the user


def parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text, "<program>")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def plain(text: str) -> str:
    """With ordinary spaces: no byte-order marks, and a blank for each no-break space."""
    return text.translate(_ODD_SPACES)


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
    """The last block that defines the entry point (without one, that defines anything), else the last block.

    Earlier blocks that provide names which it lacks come before it.
    """
    trees = [parse(block) for block in blocks]
    known = [defined(tree) for tree in trees]
    defining = [place for place, names in enumerate(known) if (entry in names if entry else names)]
    chosen = defining[-1] if defining else len(blocks) - 1
    parts, lacking = [blocks[chosen]], _lacking(trees[chosen])
    for block, tree in zip(reversed(blocks[:chosen]), reversed(trees[:chosen]), strict=True):
        if provided := defined(tree, imports=True) & lacking:
            parts.insert(0, block)
            lacking = lacking - provided | _lacking(tree)
    return "\n\n".join(parts)


def span(text: str) -> str | None:
    """The longest run of lines that parses and begins like a program."""
    lines = text[:LONGEST].expandtabs(4).split("\n")
    best, left, start = "", PARSED, 0
    while start < len(lines) and left > 0:
        if not _OPENING.match(lines[start]):
            start += 1
            continue
        candidate, left = _longest(lines[start:], left)
        best = max(best, candidate, key=len)
        start += max(candidate.count("\n"), 1)  # a run that begins inside another one is shorter
    return best or None


def head(text: str) -> str:
    """The longest beginning that parses."""
    return _longest(text[:LONGEST].split("\n"), PARSED)[0]


def _longest(lines: list[str], left: int) -> tuple[str, int]:
    """The longest beginning of the lines that parses, and how many characters may still be parsed."""
    end = len(lines)
    while end and left > 0:
        text = "\n".join(lines[:end])
        left -= len(text)
        try:
            ast.parse(text, "<program>")
            return text, left
        except SyntaxError as error:
            end = min(end - 1, max((error.lineno or end) - 1, 0))
        except (ValueError, RecursionError, MemoryError):
            end //= 2
    return "", left


def defined(tree: ast.Module | None, imports: bool = False) -> set[str]:
    """The names defined at a program's top level, without imports unless they are asked for."""
    return {name for node in _top(tree.body if tree else ()) for name in _names(node, imports)}


def _top(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when the program is loaded, those inside an `if`, `try`, `with` or loop included."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.ExceptHandler)]
            waiting += [
                child for part in (node, *inside) for child in ast.iter_child_nodes(part) if isinstance(child, ast.stmt)
            ]


def _lacking(tree: ast.Module | None) -> set[str]:
    """Names that a program uses and nowhere binds."""
    used: set[str] = set()
    bound = set(dir(builtins))
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.stmt):
            bound |= _names(node, imports=True)
    return used - bound


def imports(text: str) -> str:
    tree = parse(text)
    nodes = [node for node in (tree.body if tree else ()) if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(ast.unparse(node) for node in nodes)


def tidy(text: str) -> str:
    """The program without comments and with standard layout, so that equal programs vote together."""
    tree = parse(text)
    if tree is None:
        return text
    try:
        return ast.unparse(tree)
    except (RecursionError, ValueError):
        return text


def _names(node: ast.stmt, imports: bool) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    if imports and isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return set()
