"""The base of HumanEval and MBPP: programs are read from outputs and run in the sandbox, if that is allowed.

A program is a fenced block or else the longest span of lines that parses. Parsing takes time in proportion to the text,
also where it fails, so a reader parses a bounded number of characters in all.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import ClassVar

from unmask.errors import UnmaskError
from unmask.tasks.checkers import PASS, Verdict
from unmask.tasks.published.benchmark import Benchmark, grade_of
from unmask.tasks.sandbox.run import Confinement, Limits, ProgramTest, run, sandbox_method
from unmask.tasks.task import Grade, Metric, Problem

LONGEST = 20_000  # characters of an output in which a program is looked for
PARSED = 6 * LONGEST  # characters that are parsed in all while a program is looked for
_FENCE = re.compile(r"^[ \t]{0,20}```[ \t]{0,20}(\w{0,20})[ \t]{0,20}$", re.MULTILINE)
_PYTHON = ("", "python", "python3", "py")
_OPENING = re.compile(
    r"(?:async +)?def +\w{1,99} *\(|class +\w{1,99} *[:(]|@\w|if |try:|for |with "
    r"|import +\w|from +[\w.]{1,99} +import\b|[A-Za-z_]\w{0,99} *=[^=]"
)
_ODD_SPACES = str.maketrans({"\ufeff": None, "\u200b": None} | dict.fromkeys("\u00a0\u2007\u202f\u3000", " "))

warnings.filterwarnings("ignore", module="<program>")  # warnings about a model's code are not for the user


@dataclass(frozen=True)
class ProgramTask(Benchmark):
    version: ClassVar[int] = 2

    allow_code: bool = False  # allows running programs that a model wrote
    sandbox: Confinement = "namespaces"  # rlimits is weaker and noted in the grade

    @abstractmethod
    def program_test(self, problem: Problem, text: str) -> ProgramTest:
        """Return the program of an output with its tests."""

    def ready(self) -> None:
        """Raise if no program can be run."""
        if not self.allow_code:
            raise UnmaskError("grading runs programs that a model wrote: allow it with --allow-code (allow-code=true)")
        if self.sandbox == "namespaces":
            sandbox_method()

    def answer(self, text: str, metric: Metric = "ours") -> str | None:
        del metric
        return read(text)

    def key(self, text: str) -> str:
        answer = self.answer(text)
        return text if answer is None else tidy(answer)

    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade:
        """Run the tests, which are the same under both metrics."""
        del metric
        test = self.program_test(problem, text)
        if not test.program.strip():
            return grade_of(False, None)
        self.ready()
        result = run(test, self.sandbox)
        return Grade(result.right, float(result.right), test.program, result.note)


def read(text: str, entry: str | None = None) -> str | None:
    """Return the program in an output: of several blocks the last that defines the entry point, with those it needs."""
    text = text[-LONGEST:]
    program = _find(text, entry)
    if with_plain_spaces(text) == text or (program is not None and parse(program)):
        return program
    return _find(with_plain_spaces(text), entry)


def _find(text: str, entry: str | None) -> str | None:
    blocks = fenced_blocks(text)
    begin, done = text.rfind("[BEGIN]"), text.rfind("[DONE]")
    if not blocks and 0 <= begin < done:
        blocks = [text[begin + len("[BEGIN]") : done].strip("\n")]
    return last_defining(blocks, entry) if blocks else longest_span(text)


def completed(prompt: str, entry: str, text: str) -> str:
    """Return the program in the output, or the prompt with the output as its body."""
    code = read(text, entry) or ""
    if entry in defined_names(parse(code)):
        return code
    body = code if fenced_blocks(text) else with_plain_spaces(text[:LONGEST])
    whole = longest_beginning(prompt + body)
    return code if len(whole.strip()) <= len(prompt.strip()) else whole


def run_tests(
    program: str, tests: Sequence[str], before: str = "", seconds: int = 10, sandbox: Confinement = "namespaces"
) -> Verdict:
    """Return whether a program passes all tests in the sandbox; `before` is run first, there and in the program."""
    if not program.strip():
        return Verdict(0.0, note="there is no program")
    names, modules = names_in("\n".join(tests))
    prelude = "\n".join([before, *(f"import {name}" for name in sorted(modules))])
    test = ProgramTest(program, tuple(tests), tuple(sorted(names)), prelude, before)
    result = run(test, sandbox, Limits(seconds, patience=max(12 * seconds, 30)))
    return PASS if result.right else Verdict(0.0, note=result.note)


def names_in(tests: str) -> tuple[set[str], set[str]]:
    """Return the names that tests expect of a program, and the standard modules that they use without an import."""
    names = _lacking(parse(tests))
    modules = {name for name in names & sys.stdlib_module_names if re.search(rf"\b{name}\.", tests)}
    return names - modules, modules


def parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text, "<program>")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def with_plain_spaces(text: str) -> str:
    """Remove byte-order marks and replace no-break spaces by spaces."""
    return text.translate(_ODD_SPACES)


def fenced_blocks(text: str) -> list[str]:
    """Return the Python blocks between ``` lines; the last may be cut off by the end of the output."""
    marks = list(_FENCE.finditer(text))
    blocks = [
        text[opening.end() : closing.start() if closing else len(text)].strip("\n")
        for opening, closing in zip_longest(marks[::2], marks[1::2])
        if opening[1].lower() in _PYTHON
    ]
    return [block for block in blocks if block.strip()]


def last_defining(blocks: Sequence[str], entry: str | None) -> str:
    """Return the last block that defines the entry point (or anything, if there is none), else the last block.

    Earlier blocks that define names which it lacks come before it.
    """
    trees = [parse(block) for block in blocks]
    known = [defined_names(tree) for tree in trees]
    defining = [place for place, names in enumerate(known) if (entry in names if entry else names)]
    chosen = defining[-1] if defining else len(blocks) - 1
    parts, lacking = [blocks[chosen]], _lacking(trees[chosen])
    for block, tree in zip(reversed(blocks[:chosen]), reversed(trees[:chosen]), strict=True):
        if provided := defined_names(tree, imports=True) & lacking:
            parts.insert(0, block)
            lacking = lacking - provided | _lacking(tree)
    return "\n\n".join(parts)


def longest_span(text: str) -> str | None:
    """Return the longest run of lines that parses and begins like a program."""
    lines = text[:LONGEST].expandtabs(4).split("\n")
    best, left, start = "", PARSED, 0
    while start < len(lines) and left > 0:
        if not _OPENING.match(lines[start]):
            start += 1
            continue
        candidate, left = _longest(lines[start:], left)
        best = max(best, candidate, key=len)
        start += max(candidate.count("\n"), 1)  # a run that begins inside this one is shorter
    return best or None


def longest_beginning(text: str) -> str:
    """Return the longest beginning that parses."""
    return _longest(text[:LONGEST].split("\n"), PARSED)[0]


def _longest(lines: list[str], left: int) -> tuple[str, int]:
    """Return the longest beginning of the lines that parses, and how many characters may still be parsed."""
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


def defined_names(tree: ast.Module | None, imports: bool = False) -> set[str]:
    """Return the names that a program defines at its top level; imported names only if `imports` is true."""
    return {name for node in _top(tree.body if tree else ()) for name in _names(node, imports)}


def _top(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when the program is loaded, also those inside `if`, `try`, `with` and loops."""
    waiting: list[ast.AST] = [*body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = ast.iter_child_nodes(node)
            waiting += [child for child in inside if isinstance(child, ast.stmt | ast.ExceptHandler)]


def _lacking(tree: ast.Module | None) -> set[str]:
    """Return the names that a program uses and nowhere binds."""
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


def import_lines(text: str) -> str:
    """Return the import statements at the top level of a program."""
    tree = parse(text)
    nodes = [node for node in (tree.body if tree else ()) if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(ast.unparse(node) for node in nodes)


def tidy(text: str) -> str:
    """Remove comments and normalise the layout, so that equal programs vote together."""
    try:
        return ast.unparse(ast.parse(text, "<program>"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
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
