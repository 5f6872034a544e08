"""A small Python, walked rather than run: an allow-listed syntax tree, a budget of steps, no way out.

Whole numbers, truth values, strings, lists and tuples; functions, loops, comprehensions; a few builtins and
methods (`builtin.py`). Every step and every element made is paid for from one budget, so time and memory are
bounded together; whatever is not listed here is refused before anything happens.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from unmask.tasks.builtin import BUILTINS, METHODS, Purse, combine, equal, hold

LONGEST = 4000  # characters of a program
STEPS = 20_000  # what one call may spend
DEEPEST = 40  # calls inside calls
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ALLOWED = (
    *(ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign, ast.Expr),
    *(
        ast.For,
        ast.While,
        ast.If,
        ast.Break,
        ast.Continue,
        ast.Pass,
        ast.Load,
        ast.Store,
        ast.Constant,
        ast.Name,
    ),
    *(
        ast.BinOp,
        ast.UnaryOp,
        ast.BoolOp,
        ast.Compare,
        ast.IfExp,
        ast.Call,
        ast.Attribute,
        ast.Subscript,
        ast.Slice,
    ),
    *(ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp, ast.comprehension, ast.And, ast.Or),
    *(ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Pow, ast.UAdd, ast.USub, ast.Not),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot),
)
_BREAK, _CONTINUE = object(), object()
_FAILURES = (TypeError, ValueError, LookupError, ArithmeticError, RecursionError, MemoryError)


class ProgramError(Exception):
    """The program is not in the small Python, failed, or spent its budget."""


@dataclass(frozen=True)
class _Returned:
    value: Any


@dataclass(frozen=True)
class Program:
    functions: dict[str, ast.FunctionDef]

    def call(self, name: str, arguments: Sequence[Any], steps: int = STEPS) -> Any:
        """What the function returns; the arguments are copied, so the program cannot change them."""
        if name not in self.functions:
            raise ProgramError(f"there is no function {name}")
        try:
            return _Machine(self.functions, Purse(steps)).call(name, [_copy(value) for value in arguments])
        except _FAILURES as error:
            raise ProgramError(f"{type(error).__name__}: {error}"[:200]) from None

    def gives(self, name: str, arguments: Sequence[Any], wanted: Any, steps: int = STEPS) -> bool:
        """Whether the call returns just this: same type, same value."""
        got = self.call(name, arguments, steps)
        try:
            return equal(Purse(steps), got, wanted, strict=True)
        except _FAILURES:
            return False


def load(source: str) -> Program:
    """A program read and vetted: only functions at the top, only listed syntax."""
    body = parse(source).body
    functions = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
    if len(functions) < len(body):
        raise ProgramError("only functions stand at the top, each once")
    return Program(functions)


def parse(source: str) -> ast.Module:
    """The syntax tree, every node of a listed kind."""
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
    purse: Purse
    frames: list[dict[str, Any]] = field(default_factory=list)

    def call(self, name: str, arguments: list[Any]) -> Any:
        function = self.functions[name]
        names = [argument.arg for argument in function.args.args]
        if len(names) != len(arguments):
            raise ProgramError(f"{name} takes {len(names)} arguments, not {len(arguments)}")
        if len(self.frames) >= DEEPEST:
            raise ProgramError("calls go too deep")
        self.frames.append(dict(zip(names, arguments, strict=True)))
        done = self.block(function.body)
        self.frames.pop()
        return done.value if isinstance(done, _Returned) else None

    def block(self, body: list[ast.stmt]) -> Any:
        """None where the block ran through, else how it was left."""
        for statement in body:
            left = self.statement(statement)
            if left is not None:
                return left
        return None

    def statement(self, node: ast.stmt) -> Any:
        self.purse.pay(1)
        match node:
            case ast.Return():
                return _Returned(None if node.value is None else self.value(node.value))
            case ast.Assign():
                value = self.value(node.value)
                for target in node.targets:
                    self.store(target, value)
            case ast.AugAssign():
                load = ast.Name(node.target.id) if isinstance(node.target, ast.Name) else node.target
                value = combine(self.purse, node.op, self.value(load), self.value(node.value))
                self.store(node.target, value)
            case ast.If():
                return self.block(node.body if self.value(node.test) else node.orelse)
            case ast.For():
                return self.loop(node)
            case ast.While():
                return self.repeat(node)
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

    def loop(self, node: ast.For) -> Any:
        for item in self.items(self.value(node.iter)):
            self.purse.pay(1)
            self.store(node.target, item)
            left = self.block(node.body)
            if left is _BREAK:
                return None
            if isinstance(left, _Returned):
                return left
        return self.block(node.orelse)

    def repeat(self, node: ast.While) -> Any:
        while self.value(node.test):
            self.purse.pay(1)
            left = self.block(node.body)
            if left is _BREAK:
                return None
            if isinstance(left, _Returned):
                return left
        return self.block(node.orelse)

    def items(self, value: Any) -> Any:
        if not isinstance(value, list | tuple | str):
            raise ProgramError(f"{type(value).__name__} cannot be looped over")
        return value

    def store(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name():
                self.frames[-1][target.id] = value
            case ast.Tuple() | ast.List():
                parts = list(self.items(value))
                self.purse.pay(len(parts))
                if len(parts) != len(target.elts):
                    raise ProgramError("a tuple of another length")
                for part, item in zip(target.elts, parts, strict=True):
                    self.store(part, item)
            case ast.Subscript() if not isinstance(target.slice, ast.Slice):
                held, place = self.value(target.value), self.value(target.slice)
                if not isinstance(held, list) or not isinstance(place, int):
                    raise ProgramError("only places in lists are assigned to")
                held[place] = value
            case _:
                raise ProgramError(f"{type(target).__name__} cannot be assigned to")

    def value(self, node: ast.expr) -> Any:
        self.purse.pay(1)
        match node:
            case ast.Constant():
                return hold(self.purse, node.value)
            case ast.Name():
                if node.id not in self.frames[-1]:
                    raise ProgramError(f"there is nothing called {node.id[:40]}")
                return self.frames[-1][node.id]
            case ast.BinOp():
                return combine(self.purse, node.op, self.value(node.left), self.value(node.right))
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
            if not self.holds(left, op, right):
                return False
            left = right
        return True

    def holds(self, left: Any, op: ast.cmpop, right: Any) -> bool:
        match op:
            case ast.Eq():
                return equal(self.purse, left, right)
            case ast.NotEq():
                return not equal(self.purse, left, right)
            case ast.Is():
                return left is right
            case ast.IsNot():
                return left is not right
            case ast.In() | ast.NotIn():
                return self.within(left, right) is isinstance(op, ast.In)
        if not all(isinstance(side, int) for side in (left, right)):
            if not all(isinstance(side, str) for side in (left, right)):
                raise ProgramError("only numbers or strings are put in order")
            self.purse.pay(len(left) + len(right))
        return _COMPARE[type(op)](left, right)

    def within(self, item: Any, held: Any) -> bool:
        if isinstance(held, str) and isinstance(item, str):
            self.purse.pay(len(held) + len(item))
            return item in held
        return any(equal(self.purse, item, other) for other in self.items(held))

    def invoke(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name):
            name = node.func.id
            arguments = [self.value(argument) for argument in node.args]
            if name in self.functions:
                return self.call(name, arguments)
            if name in BUILTINS:
                return BUILTINS[name](self.purse, *arguments)
            raise ProgramError(f"there is no function {name[:40]}")
        if not isinstance(node.func, ast.Attribute):
            raise ProgramError("only names and methods are called")
        held = self.value(node.func.value)
        method = METHODS.get((type(held), node.func.attr))
        if method is None:
            raise ProgramError(f"{type(held).__name__} has no method {node.func.attr[:40]}")
        return method(self.purse, held, *(self.value(argument) for argument in node.args))

    def subscript(self, node: ast.Subscript) -> Any:
        held = self.items(self.value(node.value))
        if isinstance(node.slice, ast.Slice):
            ends = (node.slice.lower, node.slice.upper, node.slice.step)
            place: Any = slice(*(None if end is None else self.value(end) for end in ends))
            self.purse.pay(len(held))
        else:
            place = self.value(node.slice)
        return held[place]

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
        """Loop names stay inside, as in Python; a generator is worked out at once."""
        made: list[Any] = []
        self.frames.append(dict(self.frames[-1]))
        self.purse.pay(len(self.frames[-1]))
        self.gather(node.elt, node.generators, made)
        self.frames.pop()
        return made

    def gather(self, item: ast.expr, loops: list[ast.comprehension], made: list[Any]) -> None:
        if not loops:
            made.append(self.value(item))
            return
        for value in self.items(self.value(loops[0].iter)):
            self.purse.pay(1)
            self.store(loops[0].target, value)
            if all(self.value(test) for test in loops[0].ifs):
                self.gather(item, loops[1:], made)
