"""Runs the syntax tree of a vetted program, one charged step at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from unmask.tasks.generated.calculator import Calculator
from unmask.tasks.generated.values import ProgramError, combine, each, elements, hashed

_BREAK, _CONTINUE = object(), object()


@dataclass(frozen=True)
class _Returned:
    value: Any


class Machine(Calculator):
    """Statements; what they compute is the calculator's."""

    def call(self, name: str, arguments: list[Any]) -> Any:
        function = self.functions[name]
        with self.inside(self.names(name, function.args, arguments)):
            ending = self.block(function.body)
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
                self.store(node.target, self.changed(node))
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

    def changed(self, node: ast.AugAssign) -> Any:
        """A list or a set is changed in place, for every name that it has."""
        old, value = self.value(node.target), self.value(node.value)
        if isinstance(old, list) and isinstance(node.op, ast.Add):
            old.extend(elements(self.budget, value))
            return old
        new = combine(self.budget, node.op, old, value)
        if isinstance(old, list):
            old[:] = new
        elif isinstance(old, set):
            old.intersection_update(new)
            old.update(new)
        return old if isinstance(old, list | set) else new

    def loop(self, node: ast.For | ast.While) -> Any:
        passes = self.passes(node.target, self.value(node.iter)) if isinstance(node, ast.For) else self.tests(node.test)
        for _ in passes:
            ending = self.block(node.body)
            if ending is _BREAK:
                return None
            if isinstance(ending, _Returned):
                return ending
        return self.block(node.orelse)

    def passes(self, target: ast.expr, values: Any) -> Iterator[None]:
        for item in each(self.budget, values):
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
                items = elements(self.budget, value)
                if len(items) != len(target.elts):
                    raise ProgramError("a tuple of another length")
                for part, item in zip(target.elts, items, strict=True):
                    self.store(part, item)
            case ast.Subscript() if not isinstance(target.slice, ast.Slice):
                values, place = self.value(target.value), self.value(target.slice)
                if isinstance(values, dict):
                    values[hashed(self.budget, place)] = value
                elif isinstance(values, list) and isinstance(place, int):
                    values[place] = value
                else:
                    raise ProgramError("only places in lists and dictionaries are assigned to")
            case _:
                raise ProgramError(f"{type(target).__name__} cannot be assigned to")
