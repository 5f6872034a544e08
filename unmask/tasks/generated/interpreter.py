"""A small subset of Python, interpreted on its syntax tree: allow-listed syntax, a step budget, no imports.

It has integers, booleans, strings, lists, tuples, dictionaries and sets; functions, loops, comprehensions and
generators; a few builtins and methods (`builtin.py`). Every step and every new element is charged to one budget, which
bounds time and memory together (`machine.py`, `calculator.py`). Syntax that is not listed is refused before the
program starts.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unmask.tasks.generated.machine import Machine
from unmask.tasks.generated.values import Budget, ProgramError, equal

LONGEST = 4000  # characters of a program
STEPS = 20_000  # budget of one call
_SYNTAX = """
    Module FunctionDef arguments arg Return Assign AugAssign Expr For While If Break Continue Pass Load Store
    Constant Name BinOp UnaryOp BoolOp Compare IfExp Call keyword Lambda Attribute Subscript Slice List Tuple Dict Set
    ListComp DictComp SetComp GeneratorExp comprehension JoinedStr FormattedValue And Or Add Sub Mult FloorDiv Mod Pow
    BitOr BitAnd UAdd USub Not Eq NotEq Lt LtE Gt GtE In NotIn Is IsNot
"""
_ALLOWED = tuple(getattr(ast, name) for name in _SYNTAX.split())
_FAILURES = (TypeError, ValueError, LookupError, ArithmeticError, RuntimeError, MemoryError)


@dataclass(frozen=True)
class Program:
    functions: dict[str, ast.FunctionDef]

    def call(self, name: str, arguments: Sequence[Any], steps: int = STEPS) -> Any:
        """What the function returns; arguments are copied, so the program cannot change them."""
        if name not in self.functions:
            raise ProgramError(f"there is no function {name}")
        try:
            return Machine(self.functions, Budget(steps)).call(name, [_copy(value) for value in arguments])
        except _FAILURES as error:
            raise ProgramError(f"{type(error).__name__}: {error}"[:200]) from None

    def gives(self, name: str, arguments: Sequence[Any], wanted: Any, steps: int = STEPS) -> bool:
        """Whether the call returns a value of the same type that is equal."""
        value = self.call(name, arguments, steps)
        try:
            return equal(Budget(steps), value, wanted, strict=True)
        except _FAILURES:
            return False


def load(source: str) -> Program:
    """A parsed and vetted program: functions only at the top level."""
    body = parse(source).body
    functions = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
    if len(functions) < len(body):
        raise ProgramError("only functions stand at the top, each once")
    return Program(functions)


def parse(source: str) -> ast.Module:
    """The syntax tree, every node of an allowed kind."""
    if len(source) > LONGEST:
        raise ProgramError(f"a program has at most {LONGEST} characters, not {len(source)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        for node in ast.walk(tree):
            _vet(node)
    except (SyntaxError, *_FAILURES) as error:
        raise ProgramError(f"{type(error).__name__}: {error}"[:200]) from None
    return tree


def _vet(node: ast.AST) -> None:
    if not isinstance(node, _ALLOWED):
        raise ProgramError(f"{type(node).__name__} is not in the small Python")
    if isinstance(node, ast.Constant) and not isinstance(node.value, int | str | None):
        raise ProgramError(f"{type(node.value).__name__} is not in the small Python")
    if isinstance(node, ast.FunctionDef) and (node.decorator_list or node.args.defaults or node.args.kw_defaults):
        raise ProgramError("a function has plain arguments only")
    if isinstance(node, ast.arguments) and (node.vararg or node.kwarg or node.kwonlyargs or node.posonlyargs):
        raise ProgramError("a function has plain arguments only")
    if isinstance(node, ast.Lambda) and node.args.defaults:
        raise ProgramError("a function has plain arguments only")
    if isinstance(node, ast.comprehension) and node.is_async:
        raise ProgramError("nothing waits in the small Python")


def _copy(value: Any) -> Any:
    return [_copy(item) for item in value] if isinstance(value, list) else value
