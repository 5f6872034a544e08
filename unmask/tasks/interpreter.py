"""A small subset of Python, interpreted on its syntax tree: allow-listed syntax, a step budget, no imports.

It has integers, booleans, strings, lists and tuples; functions, loops and comprehensions; a few builtins and
methods (`builtin.py`). Every step and every new element is charged to one budget, which bounds time and memory
together. Syntax that is not listed is refused before the program starts.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from unmask.tasks.builtin import BUILTINS, METHODS
from unmask.tasks.values import Budget, ProgramError, charged, combine, compare, equal, sequence

LONGEST = 4000  # characters of a program
STEPS = 20_000  # budget of one call
DEEPEST = 40  # nested calls
_SYNTAX = """
    Module FunctionDef arguments arg Return Assign AugAssign Expr For While If Break Continue Pass Load Store
    Constant Name BinOp UnaryOp BoolOp Compare IfExp Call Attribute Subscript Slice List Tuple ListComp
    GeneratorExp comprehension And Or Add Sub Mult FloorDiv Mod Pow UAdd USub Not
    Eq NotEq Lt LtE Gt GtE In NotIn Is IsNot
"""
_ALLOWED = tuple(getattr(ast, name) for name in _SYNTAX.split())
_BREAK, _CONTINUE = object(), object()
_FAILURES = (TypeError, ValueError, LookupError, ArithmeticError, RecursionError, MemoryError)


@dataclass(frozen=True)
class _Returned:
    value: Any


@dataclass(frozen=True)
class Program:
    functions: dict[str, ast.FunctionDef]

    def call(self, name: str, arguments: Sequence[Any], steps: int = STEPS) -> Any:
        """What the function returns; arguments are copied, so the program cannot change them."""
        if name not in self.functions:
            raise ProgramError(f"there is no function {name}")
        try:
            return _Machine(self.functions, Budget(steps)).call(name, [_copy(value) for value in arguments])
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
    if isinstance(node, ast.Call) and node.keywords:
        raise ProgramError("arguments are given by place only")


def _copy(value: Any) -> Any:
    return [_copy(item) for item in value] if isinstance(value, list) else value


@dataclass
class _Machine:
    functions: dict[str, ast.FunctionDef]
    budget: Budget
    frames: list[dict[str, Any]] = field(default_factory=list)

    def call(self, name: str, arguments: list[Any]) -> Any:
        function = self.functions[name]
        names = [argument.arg for argument in function.args.args]
        if len(names) != len(arguments):
            raise ProgramError(f"{name} takes {len(names)} arguments, not {len(arguments)}")
        if len(self.frames) >= DEEPEST:
            raise ProgramError("calls go too deep")
        self.frames.append(dict(zip(names, arguments, strict=True)))
        ending = self.block(function.body)
        self.frames.pop()
        return ending.value if isinstance(ending, _Returned) else None

    def block(self, body: list[ast.stmt]) -> Any:
        """None if the block ran to its end, else what left it early: a break, a continue or a return."""
        for statement in body:
            ending = self.statement(statement)
            if ending is not None:
                return ending
        return None

    def statement(self, node: ast.stmt) -> Any:
        self.budget.charge(1)
        match node:
            case ast.Return():
                return _Returned(None if node.value is None else self.value(node.value))
            case ast.Assign():
                value = self.value(node.value)
                for target in node.targets:
                    self.store(target, value)
            case ast.AugAssign():
                value = combine(self.budget, node.op, self.value(node.target), self.value(node.value))
                self.store(node.target, value)
            case ast.If():
                return self.block(node.body if self.value(node.test) else node.orelse)
            case ast.For() | ast.While():
                return self.loop(node)
            case ast.Expr():
                self.value(node.value)
            case ast.Break():
                return _BREAK
            case ast.Continue():
                return _CONTINUE
            case ast.Pass():
                pass
            case _:
                raise ProgramError(f"{type(node).__name__} does not stand inside a function")
        return None

    def loop(self, node: ast.For | ast.While) -> Any:
        for _ in self.passes(node.target, node.iter) if isinstance(node, ast.For) else self.tests(node.test):
            ending = self.block(node.body)
            if ending is _BREAK:
                return None
            if isinstance(ending, _Returned):
                return ending
        return self.block(node.orelse)

    def passes(self, target: ast.expr, items: ast.expr) -> Iterator[None]:
        for item in sequence(self.value(items)):
            self.budget.charge(1)
            self.store(target, item)
            yield

    def tests(self, test: ast.expr) -> Iterator[None]:
        while self.value(test):
            self.budget.charge(1)
            yield

    def store(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name():
                self.frames[-1][target.id] = value
            case ast.Tuple() | ast.List():
                items = list(sequence(value))
                self.budget.charge(len(items))
                if len(items) != len(target.elts):
                    raise ProgramError("a tuple of another length")
                for part, item in zip(target.elts, items, strict=True):
                    self.store(part, item)
            case ast.Subscript() if not isinstance(target.slice, ast.Slice):
                values, place = self.value(target.value), self.value(target.slice)
                if not isinstance(values, list) or not isinstance(place, int):
                    raise ProgramError("only places in lists are assigned to")
                values[place] = value
            case _:
                raise ProgramError(f"{type(target).__name__} cannot be assigned to")

    def value(self, node: ast.expr) -> Any:
        self.budget.charge(1)
        match node:
            case ast.Constant():
                return charged(self.budget, node.value)
            case ast.Name():
                if node.id not in self.frames[-1]:
                    raise ProgramError(f"there is nothing called {node.id[:40]}")
                return self.frames[-1][node.id]
            case ast.BinOp():
                return combine(self.budget, node.op, self.value(node.left), self.value(node.right))
            case ast.UnaryOp():
                return self.unary(node)
            case ast.BoolOp():
                return self.boolean(node)
            case ast.Compare():
                return self.compare(node)
            case ast.IfExp():
                return self.value(node.body if self.value(node.test) else node.orelse)
            case ast.Call():
                return self.invoke(node)
            case ast.Subscript():
                return self.subscript(node)
            case ast.List():
                return [self.value(item) for item in node.elts]
            case ast.Tuple():
                return tuple(self.value(item) for item in node.elts)
            case ast.ListComp() | ast.GeneratorExp():
                return self.comprehension(node)
            case _:
                raise ProgramError(f"{type(node).__name__} has no value here")

    def unary(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not value
        return -value if isinstance(node.op, ast.USub) else +value

    def boolean(self, node: ast.BoolOp) -> Any:
        stop = isinstance(node.op, ast.Or)
        value: Any = None
        for part in node.values:
            value = self.value(part)
            if bool(value) is stop:
                break
        return value

    def compare(self, node: ast.Compare) -> bool:
        left = self.value(node.left)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self.value(part)
            if not compare(self.budget, op, left, right):
                return False
            left = right
        return True

    def invoke(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name):
            name, arguments = node.func.id, [self.value(argument) for argument in node.args]
            if name in self.functions:
                return self.call(name, arguments)
            if name in BUILTINS:
                return BUILTINS[name](self.budget, *arguments)
            raise ProgramError(f"there is no function {name[:40]}")
        if not isinstance(node.func, ast.Attribute):
            raise ProgramError("only names and methods are called")
        value = self.value(node.func.value)
        method = METHODS.get((type(value), node.func.attr))
        if method is None:
            raise ProgramError(f"{type(value).__name__} has no method {node.func.attr[:40]}")
        return method(self.budget, value, *(self.value(argument) for argument in node.args))

    def subscript(self, node: ast.Subscript) -> Any:
        values = sequence(self.value(node.value))
        if not isinstance(node.slice, ast.Slice):
            return values[self.value(node.slice)]
        ends = (node.slice.lower, node.slice.upper, node.slice.step)
        place = slice(*(None if end is None else self.value(end) for end in ends))
        self.budget.charge(len(values))
        return values[place]

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
        """Loop names stay inside, as in Python; a generator is evaluated at once."""
        self.frames.append(dict(self.frames[-1]))
        self.budget.charge(len(self.frames[-1]))
        items = list(self.gather(node.elt, node.generators))
        self.frames.pop()
        return items

    def gather(self, item: ast.expr, loops: list[ast.comprehension]) -> Iterator[Any]:
        if not loops:
            yield self.value(item)
            return
        for _ in self.passes(loops[0].target, loops[0].iter):
            if all(self.value(test) for test in loops[0].ifs):
                yield from self.gather(item, loops[1:])
