"""The values of a vetted program's expressions, computed on its syntax tree."""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from unmask.tasks.generated.builtin import BUILTINS, METHODS
from unmask.tasks.generated.values import Budget, ProgramError, Stream, charged, combine, compare, hashed, sequence

DEEPEST = 40  # nested calls
OPTIONS = ("key", "reverse", "start", "default", "strict")
_FORM = re.compile(r"[<>^]?[+,]?0?[0-9]{0,2}[dsxbo]?")
_END = object()


@dataclass
class Calculator(ABC):
    functions: dict[str, ast.FunctionDef]
    budget: Budget
    frames: list[MutableMapping[str, Any]] = field(default_factory=list)  # the names of each call that is under way

    @abstractmethod
    def call(self, name: str, arguments: list[Any]) -> Any:
        """What a function of the program returns."""

    @abstractmethod
    def passes(self, target: ast.expr, values: Any) -> Iterator[None]:
        """One step for each of the values, with the target set to it."""

    def names(self, name: str, taken: ast.arguments, arguments: list[Any]) -> dict[str, Any]:
        if len(taken.args) != len(arguments):
            raise ProgramError(f"{name} takes {len(taken.args)} arguments, not {len(arguments)}")
        return {argument.arg: value for argument, value in zip(taken.args, arguments, strict=True)}

    @contextmanager
    def inside(self, frame: MutableMapping[str, Any]) -> Iterator[None]:
        """With these names until it ends."""
        if len(self.frames) >= DEEPEST:
            raise ProgramError("calls go too deep")
        self.frames.append(frame)
        try:
            yield
        finally:
            self.frames.pop()

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
            case ast.JoinedStr():
                return charged(self.budget, "".join(self.formatted(part) for part in node.values))
            case _:
                return self.container(node)

    def container(self, node: ast.expr) -> Any:
        match node:
            case ast.List():
                return [self.value(item) for item in node.elts]
            case ast.Tuple():
                return tuple(self.value(item) for item in node.elts)
            case ast.Set():
                return {hashed(self.budget, self.value(item)) for item in node.elts}
            case ast.Dict() if None not in node.keys:
                pairs = zip(node.keys, node.values, strict=True)
                return {hashed(self.budget, self.value(key)): self.value(value) for key, value in pairs if key}
            case ast.GeneratorExp():
                return Stream(self.generated(node))
            case ast.ListComp():
                return list(self.generated(node))
            case ast.SetComp():
                return {hashed(self.budget, item) for item in self.generated(node)}
            case ast.DictComp():
                return {hashed(self.budget, key): value for key, value in self.generated(node)}
            case _:
                raise ProgramError(f"{type(node).__name__} has no value here")

    def formatted(self, node: ast.expr) -> str:
        """A part of an f-string: text, or a value in a short form."""
        if not isinstance(node, ast.FormattedValue):
            return self.value(node)
        form = "" if node.format_spec is None else self.value(node.format_spec)
        value = self.value(node.value)
        if node.conversion not in (-1, ord("s")) or not isinstance(value, int | str) or not _FORM.fullmatch(form):
            raise ProgramError("only numbers and strings are put into a string, in a plain form")
        return format(value, form)

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
                return self.call(name, arguments + self.by_name(self.functions[name], arguments, node.keywords))
            if name in BUILTINS:
                return BUILTINS[name](self.budget, *arguments, **self.options(node.keywords))
            raise ProgramError(f"there is no function {name[:40]}")
        if not isinstance(node.func, ast.Attribute):
            raise ProgramError("only names and methods are called")
        value = self.value(node.func.value)
        method = METHODS.get((type(value), node.func.attr))
        if method is None:
            raise ProgramError(f"{type(value).__name__} has no method {node.func.attr[:40]}")
        arguments = [self.value(argument) for argument in node.args]
        return method(self.budget, value, *arguments, **self.options(node.keywords))

    def by_name(self, function: ast.FunctionDef, given: list[Any], keywords: list[ast.keyword]) -> list[Any]:
        """The values of the arguments after those given by place, in the function's order."""
        values = {keyword.arg: self.value(keyword.value) for keyword in keywords}
        left = [argument.arg for argument in function.args.args[len(given) :]]
        if sorted(map(str, values)) != sorted(left[: len(values)]) and values:
            raise ProgramError("arguments that the function does not take")
        return [values[name] for name in left if name in values]

    def options(self, keywords: list[ast.keyword]) -> dict[str, Any]:
        """Of a builtin or method; only `key` is a function."""
        if any(keyword.arg not in OPTIONS for keyword in keywords):
            raise ProgramError("an option that is not in the small Python")
        return {str(kw.arg): self.function(kw.value) if kw.arg == "key" else self.value(kw.value) for kw in keywords}

    def function(self, node: ast.expr) -> Callable[[Any], Any]:
        if isinstance(node, ast.Name) and node.id in self.functions:
            return lambda value: self.call(node.id, [value])
        if isinstance(node, ast.Name) and node.id in BUILTINS:
            return lambda value: BUILTINS[node.id](self.budget, value)
        if not isinstance(node, ast.Lambda):
            raise ProgramError("a key is a function")
        outer, taken, body = self.frames[-1], node.args, node.body

        def apply(value: Any) -> Any:
            with self.inside(ChainMap(self.names("lambda", taken, [value]), outer)):
                return self.value(body)

        return apply

    def subscript(self, node: ast.Subscript) -> Any:
        values = self.value(node.value)
        if isinstance(values, dict) and not isinstance(node.slice, ast.Slice):
            return values[hashed(self.budget, self.value(node.slice))]
        sequence(values)
        if not isinstance(node.slice, ast.Slice):
            return values[self.value(node.slice)]
        ends = (node.slice.lower, node.slice.upper, node.slice.step)
        place = slice(*(None if end is None else self.value(end) for end in ends))
        self.budget.charge(len(values))
        return values[place]

    def generated(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> Iterator[Any]:
        """Its items, each when it is asked for; loop names stay inside, as in Python."""
        frame = ChainMap({}, self.frames[-1])
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        first = self.value(node.generators[0].iter)  # at once, the rest later
        items = self.gather(parts, node.generators, first)

        def run() -> Iterator[Any]:
            while True:
                with self.inside(frame):
                    item = next(items, _END)
                if item is _END:
                    return
                yield item

        return run()

    def gather(self, parts: tuple[ast.expr, ...], loops: list[ast.comprehension], values: Any) -> Iterator[Any]:
        for _ in self.passes(loops[0].target, values):
            if not all(self.value(test) for test in loops[0].ifs):
                continue
            if loops[1:]:
                yield from self.gather(parts, loops[1:], self.value(loops[1].iter))
            else:
                yield self.value(parts[0]) if len(parts) == 1 else tuple(map(self.value, parts))
