"""A small subset of Python, in which the answers to `mini-code` are run.

The subset has integers, booleans, strings, lists, tuples, dictionaries and sets; functions, loops, comprehensions and
generators; and a few builtins and methods. Only listed syntax, builtins and methods are allowed: a program cannot
import, catch an exception, use a name with two underscores, or reach any other attribute. CPython then runs it in a
child process with bounded time and memory (`unmask/child_process.py`), which can open no file. Loop passes and calls
are counted, so that an endless program fails after the same number of them everywhere.

This file is the script of that child process, so it imports only the standard library.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import re
import unicodedata  # noqa: F401  the parser imports it for some names, when no file can be opened any more
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

LONGEST = 4000  # characters of a program
LONGEST_RESULT = 40_000  # characters of a result's `repr`
STEPS = 200_000  # loop passes and calls of a program, all results together
_SYNTAX = """
    Module FunctionDef arguments arg Return Assign AugAssign Expr For While If Break Continue Pass Load Store
    Constant Name BinOp UnaryOp BoolOp Compare IfExp Call keyword Lambda Attribute Subscript Slice List Tuple Dict Set
    ListComp DictComp SetComp GeneratorExp comprehension JoinedStr FormattedValue And Or Add Sub Mult FloorDiv Mod Pow
    BitOr BitAnd UAdd USub Not Eq NotEq Lt LtE Gt GtE In NotIn Is IsNot
"""
_ALLOWED = tuple(getattr(ast, name) for name in _SYNTAX.split())
_BUILTINS = (
    *("abs", "all", "any", "bool", "dict", "enumerate", "int", "iter", "len", "list", "max", "min", "next", "range"),
    *("reversed", "set", "sorted", "str", "sum", "tuple", "zip"),
)
_METHODS = (
    *("upper", "lower", "title", "capitalize", "swapcase", "isdigit", "isalpha", "isupper", "islower", "isspace"),
    *("strip", "lstrip", "rstrip", "split", "startswith", "endswith", "find", "replace", "join"),  # strings
    *("append", "extend", "insert", "pop", "index", "count", "sort", "reverse"),  # lists
    *("get", "items", "keys", "setdefault", "update", "values"),  # dictionaries
    *("add", "discard", "remove", "union", "intersection", "difference"),  # sets
    *("issubset", "issuperset", "isdisjoint"),
)
_OPTIONS = ("key", "reverse", "start", "default", "strict")  # keyword arguments of builtins and methods
_FORMAT = re.compile(r"[<>^]?[+,]?0?[0-9]{0,2}[dsxbo]?")
_STEP = "<step>"  # the name of the counter, which no program can spell


class ProgramError(Exception):
    """The program is outside the subset, or it failed."""


def parse(source: str) -> ast.Module:
    """Return the syntax tree of a program with listed syntax only, or raise a `ProgramError`."""
    if len(source) > LONGEST:
        raise ProgramError(f"a program must have at most {LONGEST} characters, got {len(source)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        for node in ast.walk(tree):
            _check_syntax(node)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ProgramError(f"{type(error).__name__}: {error}"[:200]) from None
    return tree


def _check_syntax(node: ast.AST) -> None:
    if not isinstance(node, _ALLOWED):
        raise ProgramError(f"{type(node).__name__} is not supported")
    if isinstance(node, ast.Constant) and not isinstance(node.value, int | str | None):
        raise ProgramError(f"{type(node.value).__name__} constants are not supported")
    if isinstance(node, ast.FunctionDef) and node.decorator_list:
        raise ProgramError("decorators are not supported")
    if isinstance(node, ast.arguments) and (
        node.vararg or node.kwarg or node.kwonlyargs or node.posonlyargs or node.defaults
    ):
        raise ProgramError("functions must have plain arguments without default values")
    if isinstance(node, ast.comprehension) and node.is_async:
        raise ProgramError("await and async comprehensions are not supported")


def _check_names(tree: ast.Module) -> None:
    """Raise a `ProgramError` unless all functions, names, methods and keyword arguments are allowed."""
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if len(own) < len(tree.body):
        raise ProgramError("a program must consist of functions with different names")
    in_place: set[ast.AST] = {*tree.body}  # the functions, methods and lambdas at permitted places
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=function):
                in_place.add(function)
                _check_call(node, own)
            case ast.keyword(arg="key", value=value):
                in_place.add(value)
            case ast.Name(id=name) | ast.arg(arg=name) if "__" in name:
                raise ProgramError(f"names with two underscores are not allowed, got {name[:40]}")
            case ast.FunctionDef(name=name) if node not in in_place or "__" in name:
                raise ProgramError("functions must be at the top level, without two underscores in their names")
            case ast.Lambda() if node not in in_place:
                raise ProgramError("lambda is supported only after key=")
            case ast.Attribute(attr=name) if node not in in_place or name not in _METHODS:
                raise ProgramError(f"the attribute {name[:40]} is not supported")
            case ast.FormattedValue() if node.conversion not in (-1, ord("s")) or not _is_short(node.format_spec):
                raise ProgramError("f-strings support only short formats of numbers and strings")


def _check_call(call: ast.Call, own: set[str]) -> None:
    if isinstance(call.func, ast.Name) and call.func.id in own:
        return
    if not isinstance(call.func, ast.Name | ast.Attribute):
        raise ProgramError("only functions and methods can be called")
    for keyword in call.keywords:
        if keyword.arg not in _OPTIONS:
            raise ProgramError(f"the keyword argument {keyword.arg} is not supported")


def _is_short(spec: ast.expr | None) -> bool:
    parts = spec.values if isinstance(spec, ast.JoinedStr) else []
    return all(isinstance(part, ast.Constant) and _FORMAT.fullmatch(str(part.value)) for part in parts)


def results(source: str, name: str, calls: list[list[Any]]) -> list[str]:
    """Return the `repr` of what the function returns for each list of arguments, or raise a `ProgramError`.

    A `repr` is the same for results of the same type and value: True is not 1, and a tuple is not a list.
    """
    tree = parse(source)
    _check_names(tree)
    space = {"__builtins__": {word: getattr(builtins, word) for word in _BUILTINS}, _STEP: _counter()}
    try:
        counted = ast.fix_missing_locations(_Counted().visit(tree))
        exec(compile(counted, "<program>", "exec", dont_inherit=True), space)
        if name not in space:
            raise ProgramError(f"there is no function {name}")
        return [_short_repr(space[name](*arguments)) for arguments in calls]
    except ProgramError:
        raise
    except Exception as error:
        raise ProgramError(f"{type(error).__name__}: {error}"[:200]) from None


def _short_repr(value: Any) -> str:
    text = repr(value)
    if len(text) > LONGEST_RESULT:
        raise ProgramError(f"a result must have at most {LONGEST_RESULT} characters, got {len(text)}")
    return text


def _counter() -> Callable[[], bool]:
    left = STEPS

    def count() -> bool:
        nonlocal left
        left -= 1
        if left < 0:
            raise ProgramError(f"more than {STEPS} loop passes and calls")
        return True

    return count


class _Counted(ast.NodeTransformer):
    """Counts every call and every pass of a loop, and drops annotations, which may name anything."""

    def visit_For(self, node: ast.For | ast.While | ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(_step()))
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        return self.visit_For(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.visit_For(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.ifs.insert(0, _step())
        return node


def _step() -> ast.Call:
    return ast.Call(ast.Name(_STEP, ast.Load()), [], [])


@cache
def _confine() -> None:
    """Take the right to open files, write to them and start processes from the child process."""
    with contextlib.suppress(ImportError):  # Windows has no resource limits
        import resource

        for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC):
            resource.setrlimit(kind, (0, 0))


def answer(value: Any) -> list[str]:
    """Answer a request to the child process: a program, the name of its function, and the calls."""
    source, name, calls = value
    _confine()
    return results(source, name, calls)
