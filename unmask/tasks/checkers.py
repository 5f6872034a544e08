"""Checkers: functions from a text to a verdict that the question itself, or the user, justifies.

    checker.make("json(schema=person.json)")('{"age": -1}')  # Verdict(score=0.5, span=(8, 10), note='-1 is …')

A checker never sees the gold answer of a problem. It is deterministic and works on text alone. Settings and files are
checked when it is made; a text never raises, whatever it contains. A pattern of the user's can take long on a hostile
text, so whoever checks texts of a model does it in a child process with bounded time (`checker_child.py`).
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import json
import os
import re
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeGuard

from unmask.errors import UnmaskError, check_above, check_at_least, check_between
from unmask.registry import Registry

if TYPE_CHECKING:
    from unmask.tasks.sandbox.run import Confinement

LONGEST_OUTPUT = 1 << 16  # bytes that a program of the user's may write
LONGEST_NOTE = 300  # characters
MEMORY = 4 << 30  # bytes of address space of a program of the user's
_MOST_ERRORS = 100  # errors of a JSON text that are counted
_EXAMPLE = re.compile(r"^[ \t]*>>>(.+)\n(?![ \t]*>>>)(.+)$", re.MULTILINE)
_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")

Span = tuple[int, int]


@dataclass(frozen=True)
class Verdict:
    score: float  # 1 passes, 0 fails, between: partly right
    span: Span | None = None  # characters of the text that are wrong
    note: str = ""  # reason

    @property
    def passed(self) -> bool:
        return self.score == 1

    @classmethod
    def of(cls, value: Any, text: str) -> Verdict:
        """Read what a user's function returned about a text."""
        if isinstance(value, Verdict):
            return cls(_score(value.score, value), _span(value.span, text), value.note)
        if isinstance(value, tuple | list) and len(value) == 2:
            return cls(_score(value[0], value), _span(value[1], text))
        return cls(_score(value, value))


def _score(score: Any, value: Any) -> float:
    with contextlib.suppress(Exception):  # a scalar of numpy or torch
        score = score.item()
    if not isinstance(score, bool | int | float) or not 0 <= score <= 1:  # NaN is not
        what = repr(value)[:80]
        raise UnmaskError(
            f"a check must return True, False, a score between 0 and 1, (score, (start, end)) or a Verdict, got {what}"
        )
    return float(score)


def _span(span: Any, text: str) -> Span | None:
    if span is None:
        return None
    with contextlib.suppress(TypeError, ValueError):
        start, end = span
        if all(type(place) is int for place in (start, end)) and 0 <= start < end <= len(text):
            return start, end
    what = repr(span)[:80]
    raise UnmaskError(f"a span must be (start, end) with 0 <= start < end <= {len(text)}, got {what}")


PASS = Verdict(1.0)


@dataclass(frozen=True)
class Checker:
    """A frozen dataclass whose fields are its settings."""

    @abstractmethod
    def __call__(self, text: str) -> Verdict:
        """Return whether a text is right, and where it is wrong if that can be told."""


checker: Registry[Checker] = Registry("checker")


@dataclass(frozen=True)
class Every(Checker):
    """Several checkers: the lowest score, and the first span that one of them found."""

    checkers: tuple[Checker, ...]

    def __call__(self, text: str) -> Verdict:
        verdicts = [check(text) for check in self.checkers]
        failed = [verdict for verdict in verdicts if not verdict.passed]
        score = min((verdict.score for verdict in failed), default=1.0)
        span = next((verdict.span for verdict in failed if verdict.span), None)
        return Verdict(score, span, "; ".join(verdict.note for verdict in failed if verdict.note)[:LONGEST_NOTE])


@checker("contains")
@dataclass(frozen=True)
class Contains(Checker):
    """The text contains a given text."""

    text: str

    def __post_init__(self) -> None:
        if not self.text:
            raise UnmaskError("contains(text=…) must not be empty")

    def __call__(self, text: str) -> Verdict:
        return PASS if self.text in text else Verdict(0.0, note=f"it does not contain {self.text!r}"[:LONGEST_NOTE])


@checker("regex")
@dataclass(frozen=True)
class Regex(Checker):
    """A regular expression of Python matches the text."""

    pattern: str
    full: bool = True  # the whole text must match, not just a part of it

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise UnmaskError(f"{self.pattern!r} is not a regular expression: {error}") from None

    def __call__(self, text: str) -> Verdict:
        match = re.fullmatch(self.pattern, text) if self.full else re.search(self.pattern, text)
        return PASS if match else Verdict(0.0, note=f"{self.pattern!r} does not match"[:LONGEST_NOTE])


@checker("length")
@dataclass(frozen=True)
class Length(Checker):
    """The text is neither too short nor too long; the score is the ratio to the bound that it misses."""

    least: int | None = None
    most: int | None = None
    unit: Literal["characters", "words", "lines"] = "characters"

    def __post_init__(self) -> None:
        if self.least is None and self.most is None:
            raise UnmaskError("length needs least=… or most=…")
        if self.least is not None and self.least < 0:
            raise UnmaskError(f"least must be at least 0, got {self.least}")
        if self.most is not None and self.most < (self.least or 0):
            raise UnmaskError(f"most must be at least {self.least or 0}, got {self.most}")

    def __call__(self, text: str) -> Verdict:
        pattern = {"characters": r"(?s:.)", "words": r"\S+", "lines": r"(?m:^)(?!\Z)"}[self.unit]
        starts = [match.start() for match in re.finditer(pattern, text)]
        count = len(starts)
        if count < (self.least or 0):
            return Verdict(count / (self.least or 1), note=f"{count} {self.unit}, at least {self.least} expected")
        if self.most is not None and count > self.most:
            span = (starts[self.most], len(text))
            return Verdict(self.most / count, span, f"{count} {self.unit}, at most {self.most} expected")
        return PASS


@checker("json")
@dataclass(frozen=True)
class Json(Checker):
    """The text is JSON, alone or in one fenced block, and obeys a JSON Schema if there is one."""

    schema: str | None = None  # file; references to other files and addresses are not followed

    def __post_init__(self) -> None:
        object.__setattr__(self, "_validator", None if self.schema is None else _validator(self.schema))

    def __call__(self, text: str) -> Verdict:
        fenced = _FENCED.fullmatch(text)
        start, end = fenced.span(1) if fenced else (0, len(text))
        start = _SPACE.match(text, start, end).end()  # type: ignore[union-attr]
        try:
            value = json.loads(text[start:end], parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            place = start + error.pos
            return Verdict(0.0, (place, place + 1) if place < end else None, f"it is not JSON: {error.msg}")
        except (ValueError, RecursionError) as error:
            return Verdict(0.0, note=f"it is not JSON: {error}"[:LONGEST_NOTE])
        return self._validate(value, text, start)

    def _validate(self, value: Any, text: str, start: int) -> Verdict:
        validator = self.__dict__["_validator"]
        if validator is None:
            return PASS
        from referencing.exceptions import Unresolvable

        try:
            errors = list(islice(validator.iter_errors(value), _MOST_ERRORS))
        except Unresolvable as error:
            raise UnmaskError(f"the schema {self.schema} refers to {error.ref!r}, which is not in it") from None
        except RecursionError:
            return Verdict(0.0, note="it is nested too deeply")
        if not errors:
            return PASS
        spans = [(_value_span(text, start, error.absolute_path), error) for error in errors]
        span, first = min(spans, key=lambda pair: pair[0])
        return Verdict(1 / (1 + len(errors)), span, first.message[:LONGEST_NOTE])


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def _validator(path: str) -> Any:
    """Return the validator of a schema; it has an empty registry, so no reference is ever fetched."""
    try:
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import Draft202012Validator, validator_for
        from referencing import Registry as References
    except ImportError:
        raise UnmaskError("json(schema=…) needs jsonschema: pip install 'unmask[check]'") from None
    try:
        schema = json.loads(_read_file(path, "schema"))
        kind = validator_for(schema, Draft202012Validator)
        kind.check_schema(schema)
    except SchemaError as error:
        raise UnmaskError(f"the schema {path} is not valid: {error.message[:LONGEST_NOTE]}") from None
    except (ValueError, RecursionError) as error:
        raise UnmaskError(f"the schema {path} is not JSON: {error}") from None
    return kind(schema, registry=References())


def _read_file(path: str, what: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UnmaskError(f"the {what} {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnmaskError(f"the {what} {path} is not UTF-8 text") from None


def _value_span(text: str, start: int, path: Sequence[str | int]) -> Span:
    """Return the characters of the value at a path of keys and indices inside the JSON text that begins at `start`."""
    decoder = json.JSONDecoder()
    for step in path:
        start, item = start + 1, 0
        while True:
            start, key = _SPACE.match(text, start).end(), item  # type: ignore[union-attr]
            if isinstance(step, str):
                key, start = decoder.raw_decode(text, start)
                start = _SPACE.match(text, text.index(":", start) + 1).end()  # type: ignore[union-attr]
            if key == step:
                break
            start = text.index(",", decoder.raw_decode(text, start)[1]) + 1
            item += 1
    return start, decoder.raw_decode(text, start)[1]


@checker("python")
@dataclass(frozen=True)
class Python(Checker):
    """The program in the text passes the tests of a file: its asserts and its functions `test…` without arguments.

    Programs run in the sandbox. The score is the share of the tests that pass, or 0 if they do not come to an end.
    """

    tests: str  # file
    seconds: int = 10  # processor time of a program with all its tests

    def __post_init__(self) -> None:
        check_at_least(1, seconds=self.seconds)
        try:
            tree = ast.parse(_read_file(self.tests, "test file"))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise UnmaskError(f"the test file {self.tests} is not Python: {error}") from None
        object.__setattr__(self, "_suite", Suite.of(tree))
        if not self.__dict__["_suite"].count:
            raise UnmaskError(f"the test file {self.tests} has neither an assert nor a function test…")

    def __call__(self, text: str) -> Verdict:
        from unmask.tasks.published.programs import read

        return run_suite(read(text) or "", self.__dict__["_suite"], self.seconds)


_TRY = """
try:
    pass
except BaseException as _error:
    if not isinstance(_error, Exception) and type(_error).__name__ != "ForeignError":
        raise
    _failed.append(_test)
"""


@dataclass(frozen=True)
class Suite:
    """Tests that are counted: the judge of the sandbox runs them all and states which failed."""

    source: str  # tests, each inside a `try`
    count: int
    names: tuple[str, ...]  # names that the tests expect of the program
    imports: str = ""  # modules of the standard library that the tests use without importing them

    @classmethod
    def of(cls, tree: ast.Module) -> Suite:
        body: list[ast.stmt] = []
        calls: list[ast.stmt] = []
        count = 0
        for node in tree.body:
            name = node.name if isinstance(node, ast.FunctionDef) and not any(ast.iter_child_nodes(node.args)) else ""
            if isinstance(node, ast.Assert) or name.startswith("test"):
                count += 1
                test = node if isinstance(node, ast.Assert) else ast.parse(f"{name}()").body[0]
                label = ast.parse(f"_test = {ast.unparse(node).partition(chr(10))[0][:100]!r}").body
                (body if test is node else calls).extend([*label, _guarded(test)])
            if not isinstance(node, ast.Assert):
                body.append(node)
        names = _unbound(tree)
        owners = {node.value.id for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is_name(node.value)}
        modules = sorted(names & owners & sys.stdlib_module_names)
        source = ast.unparse(ast.Module([*body, *calls], []))
        return cls(source, count, tuple(sorted(names - {*modules})), "\n".join(f"import {name}" for name in modules))


def _guarded(test: ast.stmt) -> ast.stmt:
    guarded = ast.parse(_TRY).body[0]
    assert isinstance(guarded, ast.Try)
    guarded.body = [test]
    return guarded


def _is_name(node: ast.expr) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)


def _unbound(tree: ast.Module) -> set[str]:
    """Return the names that tests use and do not define."""
    used: set[str] = set()
    bound = {*dir(builtins), "_failed"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
    return used - bound


def run_suite(
    program: str, suite: Suite, seconds: int = 10, before: str = "", confinement: Confinement = "namespaces"
) -> Verdict:
    """Return the share of the tests that a program passes in the sandbox, with code that runs before it."""
    from unmask.tasks.sandbox.run import Limits, ProgramTest, run

    if not program.strip():
        return Verdict(0.0, note="there is no program")
    mark = secrets.token_hex(16)  # the program cannot know it, so it cannot state a result
    report = f"assert not _failed, f'{mark} {{len(_failed)}} {{_failed[0]}}'"
    tests = ("_failed = []", suite.source, report)
    test = ProgramTest(program, tests, suite.names, f"{before}\n{suite.imports}", before)
    limits = Limits(seconds=seconds, patience=max(12 * seconds, 30))
    result = run(test, confinement, limits)
    if result.right:
        return PASS
    stated = re.search(rf"{mark} ([0-9]+) (.*)", result.note)
    if stated is None:
        return Verdict(0.0, note=result.note[:LONGEST_NOTE])
    failed = int(stated[1])
    return Verdict((suite.count - failed) / suite.count, note=f"{failed} of {suite.count} tests fail: {stated[2]}")


def examples(text: str) -> list[tuple[ast.Call, Any]]:
    """Return the calls that a docstring shows (`>>> f(2)`), each with its result, if that is a literal on one line."""
    found: list[tuple[ast.Call, Any]] = []
    for match in _EXAMPLE.finditer(text[:LONGEST_OUTPUT]):
        with contextlib.suppress(SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            call, result = ast.parse(match[1].strip(), mode="eval").body, ast.literal_eval(match[2].strip())
            if isinstance(call, ast.Call):
                found.append((call, result))
    return found


@checker("command")
@dataclass(frozen=True)
class Command(Checker):
    """A program of the user's reads the text on standard input; exit code 0 passes, 1 fails, others are errors.

    It may write one line of JSON, `{"score": 0.5, "span": [3, 7], "note": "…"}`, in which every key is optional.
    """

    program: str  # path of an executable file, which is run without a shell and without arguments
    seconds: float = 10.0  # wall-clock time

    def __post_init__(self) -> None:
        check_above(0, seconds=self.seconds)
        check_between(0, 3600, seconds=self.seconds)
        path = Path(self.program).resolve()
        if not path.is_file():
            raise UnmaskError(f"the checker program {self.program} does not exist")
        if not os.access(path, os.X_OK):
            raise UnmaskError(f"the checker program {self.program} is not executable: chmod +x {self.program}")
        object.__setattr__(self, "_path", str(path))

    def __call__(self, text: str) -> Verdict:
        code, output, errors = self._run(text)
        if code not in (0, 1):
            reason = " ".join(errors.split())[:LONGEST_NOTE]
            raise UnmaskError(f"the checker program {self.program} exited with {code}{': ' * bool(reason)}{reason}")
        lines = [line for line in output.splitlines() if line.strip()]
        try:
            stated = json.loads(lines[-1]) if lines and lines[-1].lstrip().startswith("{") else {}
            known = {"score": 1.0 - code, "span": None, "note": ""} | stated
        except (ValueError, RecursionError):
            raise UnmaskError(f"the checker program {self.program} wrote {lines[-1][:80]!r}, not JSON") from None
        if code == 1 and known["score"] == 1:
            raise UnmaskError(f"the checker program {self.program} exited with 1 but stated a score of 1")
        return Verdict.of(Verdict(known["score"], known["span"], str(known["note"])[:LONGEST_NOTE]), text)

    def _run(self, text: str) -> tuple[int, str, str]:
        """Return the exit code and the two outputs; end the program and its children if it exceeds a limit."""
        with tempfile.TemporaryFile() as given:
            given.write(text.encode("utf-8", "replace"))
            given.seek(0)
            try:
                process = subprocess.Popen(
                    [self.__dict__["_path"]],
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            except OSError as error:
                raise UnmaskError(f"the checker program {self.program} cannot be run: {error.strerror}") from None
        with process:
            try:
                _limit_memory(process.pid)
                deadline = time.monotonic() + self.seconds
                output, errors = self._read(process, deadline)
                return process.wait(max(deadline - time.monotonic(), 0)), output, errors
            except subprocess.TimeoutExpired:
                raise UnmaskError(f"the checker program {self.program} took over {self.seconds} seconds") from None
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)

    def _read(self, process: subprocess.Popen[bytes], deadline: float) -> tuple[str, str]:
        streams: list[IO[bytes]] = [process.stdout, process.stderr]  # type: ignore[list-item]
        parts = dict.fromkeys(streams, b"")
        with selectors.DefaultSelector() as waiting:
            for stream in streams:
                waiting.register(stream, selectors.EVENT_READ)
            while waiting.get_map():
                ready = waiting.select(max(deadline - time.monotonic(), 0))
                if not ready:
                    raise subprocess.TimeoutExpired(self.program, self.seconds)
                for key, _ in ready:
                    stream: Any = key.fileobj
                    part = os.read(key.fd, LONGEST_OUTPUT)
                    parts[stream] += part
                    if not part:
                        waiting.unregister(stream)
                    if len(parts[stream]) > LONGEST_OUTPUT:
                        most = f"more than {LONGEST_OUTPUT} bytes"
                        raise UnmaskError(f"the checker program {self.program} wrote {most}")
        output, errors = (parts[stream].decode("utf-8", "replace") for stream in streams)
        return output, errors


def _limit_memory(pid: int) -> None:
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):  # only Linux limits other processes
        import resource

        resource.prlimit(pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
