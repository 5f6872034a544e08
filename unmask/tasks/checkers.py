"""Checkers: functions from a text to a verdict that the question itself, or the user, justifies.

    checker.make("json(schema=person.json)")('{"age": -1}')  # Verdict(score=0.5, span=(8, 10), note='-1 is …')

A checker never sees the gold answer of a problem. It is deterministic and works on text alone. Settings and files are
checked when it is made; a text never raises, whatever it contains. A pattern of the user's can take long on a hostile
text, so whoever checks texts of a model does it in a child process with bounded time and memory (`checker_child.py`).
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import signal
import subprocess
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from unmask.errors import UnmaskError, check_above, check_at_least, check_between
from unmask.registry import Registry

LONGEST = 1 << 16  # characters of a prompt in which examples are looked for
LONGEST_NOTE = 300  # characters
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
        """Read what a user's function returned about a text: a bool, a score, a score with a span, or a verdict."""
        pair = isinstance(value, tuple | list) and len(value) == 2
        stated: Any = value if isinstance(value, Verdict) else cls(*value) if pair else cls(value)  # type: ignore[arg-type]
        score, span = stated.score, stated.span
        with contextlib.suppress(Exception):  # a scalar of numpy or torch
            score = score.item()
        if not isinstance(score, bool | int | float) or not 0 <= score <= 1:  # NaN is not
            forms = "True, False, a score between 0 and 1, (score, (start, end)) or a Verdict"
            raise UnmaskError(f"a check must return {forms}, got {repr(value)[:80]}")
        return cls(float(score), None if span is None else _span(span, len(text)), stated.note)


def _span(span: Any, length: int) -> Span:
    with contextlib.suppress(TypeError, ValueError):
        start, end = span
        if type(start) is type(end) is int and 0 <= start < end <= length:
            return start, end
    raise UnmaskError(f"a span must be (start, end) with 0 <= start < end <= {length}, got {repr(span)[:80]}")


PASS = Verdict(1.0)
Check = Callable[[str], Verdict]  # says whether a text is right, and where it is wrong if that can be told


@dataclass(frozen=True)
class Checker:
    """A frozen dataclass whose fields are its settings."""

    @abstractmethod
    def __call__(self, text: str) -> Verdict:
        """Return whether a text is right, and where it is wrong if that can be told."""


checker: Registry[Checker] = Registry("checker")


def check_all(checks: Iterable[Check], text: str) -> Verdict:
    """Return the lowest score that several checks give a text, and the first span that one of them found."""
    failed = [verdict for verdict in (check(text) for check in checks) if not verdict.passed]
    score = min((verdict.score for verdict in failed), default=1.0)
    span = next((verdict.span for verdict in failed if verdict.span), None)
    return Verdict(score, span, "; ".join(verdict.note for verdict in failed if verdict.note)[:LONGEST_NOTE])


@checker("contains")
@dataclass(frozen=True)
class Contains(Checker):
    """The text contains a given text."""

    text: str  # what it must contain

    def __post_init__(self) -> None:
        if not self.text:
            raise UnmaskError("contains(text=…) must not be empty")

    def __call__(self, text: str) -> Verdict:
        return PASS if self.text in text else Verdict(0.0, note=f"it does not contain {self.text!r}"[:LONGEST_NOTE])


@checker("regex")
@dataclass(frozen=True)
class Regex(Checker):
    """A regular expression of Python matches the text."""

    pattern: str  # in the syntax of `re`
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

    least: int | None = None  # fewest of the unit
    most: int | None = None  # most of the unit
    unit: Literal["characters", "words", "lines"] = "characters"  # what is counted

    def __post_init__(self) -> None:
        if self.least is None and self.most is None:
            raise UnmaskError("length needs least=… or most=…")
        check_at_least(0, least=self.least)
        check_at_least(self.least or 0, most=self.most)

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
        object.__setattr__(self, "_errors", _validator(self.schema) if self.schema else lambda _: [])

    def __call__(self, text: str) -> Verdict:
        fenced = _FENCED.fullmatch(text)
        start, end = fenced.span(1) if fenced else (0, len(text))
        start = _SPACE.match(text, start, end).end()  # type: ignore[union-attr]
        try:
            errors = self.__dict__["_errors"](json.loads(text[start:end], parse_constant=_refuse_constant))
        except json.JSONDecodeError as error:
            place = start + error.pos
            return Verdict(0.0, (place, place + 1) if place < end else None, f"it is not JSON: {error.msg}")
        except (ValueError, RecursionError) as error:
            return Verdict(0.0, note=f"it is not JSON: {error}"[:LONGEST_NOTE])
        if not errors:
            return PASS
        spans = [(_value_span(text, start, error.absolute_path), error.message) for error in errors]
        span, note = min(spans, key=lambda pair: pair[0])
        return Verdict(1 / (1 + len(errors)), span, note[:LONGEST_NOTE])


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def _validator(path: str) -> Callable[[Any], list[Any]]:
    """Return what lists the errors of a value under a schema. No reference is ever fetched: the registry is empty."""
    try:
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import Draft202012Validator, validator_for
        from referencing import Registry as References
        from referencing.exceptions import Unresolvable
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

    def errors(value: Any) -> list[Any]:
        try:
            return list(islice(kind(schema, registry=References()).iter_errors(value), _MOST_ERRORS))
        except Unresolvable as error:
            raise UnmaskError(f"the schema {path} refers to {error.ref!r}, which is not in it") from None

    return errors


def _read_file(path: str, what: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UnmaskError(f"the {what} {path} cannot be read: {why}") from None


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

    Programs run in the sandbox, out of reach of the tests.
    """

    tests: str  # file
    seconds: int = 10  # processor time of a program with all its tests

    def __post_init__(self) -> None:
        check_at_least(1, seconds=self.seconds)
        try:
            body = ast.parse(_read_file(self.tests, "test file")).body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise UnmaskError(f"the test file {self.tests} is not Python: {error}") from None
        functions = [node for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test")]
        calls = [f"{node.name}()" for node in functions if not any(ast.iter_child_nodes(node.args))]
        if not calls and not any(isinstance(node, ast.Assert) for node in body):
            raise UnmaskError(f"the test file {self.tests} has neither an assert nor a function test…")
        object.__setattr__(self, "_tests", (*map(ast.unparse, body), *calls))

    def __call__(self, text: str) -> Verdict:
        from unmask.tasks.published.programs import read, run_tests

        return run_tests(read(text) or "", self.__dict__["_tests"], seconds=self.seconds)


def examples(text: str) -> list[tuple[ast.Call, Any]]:
    """Return the calls that a docstring shows (`>>> f(2)`), each with its result, if that is a literal on one line."""
    found: list[tuple[ast.Call, Any]] = []
    for match in _EXAMPLE.finditer(text[:LONGEST]):
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
        if not Path(self.program).is_file():
            raise UnmaskError(f"the checker program {self.program} does not exist")
        if not os.access(self.program, os.X_OK):
            raise UnmaskError(f"the checker program {self.program} is not executable: chmod +x {self.program}")

    def __call__(self, text: str) -> Verdict:
        try:
            code, output = self._run(text.encode("utf-8", "replace"))
            lines = [line for line in output.splitlines() if line.lstrip().startswith("{")]
            known = {"score": 1.0 - code, "span": None, "note": ""}
            if code in (0, 1) and lines:
                known |= json.loads(lines[-1])
        except (OSError, ValueError, RecursionError, subprocess.TimeoutExpired) as error:
            raise UnmaskError(f"the checker program {self.program} failed: {error}") from None
        if code not in (0, 1) or (code == 1 and known["score"] == 1):
            wrote = " ".join(output.split())[-LONGEST_NOTE:]
            raise UnmaskError(f"the checker program {self.program} exited with {code} and wrote {wrote!r}")
        return Verdict.of(Verdict(known["score"], known["span"], str(known["note"])[:LONGEST_NOTE]), text)

    def _run(self, text: bytes) -> tuple[int, str]:
        """Return the exit code and what the program wrote. Its children end with it."""
        path, pipe = Path(self.program).resolve(), subprocess.PIPE
        with subprocess.Popen(
            path, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, start_new_session=True
        ) as process:
            try:
                output, _ = process.communicate(text, self.seconds)
                return process.returncode, output.decode("utf-8", "replace")
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
