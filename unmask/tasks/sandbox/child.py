"""Runs inside the sandbox: the program and the judge, two processes that share only two pipes.

This file is sent as text to a fresh interpreter after `confine.py`, so it imports only the standard library.

The program's process defines the functions and answers calls. The judge's process, in its own sandbox, runs the tests:
there a function of the program is a `Remote` object that sends its arguments and receives a value, rebuilt from
built-in types. Comparisons therefore happen out of the program's reach: it can return any value, but its own equality,
patched builtins and early exits do not influence the verdict.
"""

import __future__

import ast
import contextlib
import json
import os
import signal
import sys
import types
from functools import partial
from importlib import import_module

# pyright: basic


LONGEST = 8 << 20  # bytes of one message
FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
_BOXES = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
_SCALARS = {  # how a value of each kind is rebuilt from its message; few programs need the two modules
    "int": lambda text: int(text, 16),
    "complex": lambda parts: complex(*parts),
    "bytes": bytes.fromhex,
    "fraction": lambda parts: import_module("fractions").Fraction(*(int(part, 16) for part in parts)),
    "decimal": lambda text: import_module("decimal").Decimal(str(text)),
}


class EndedError(BaseException):
    """The other process is gone or sent something unreadable; no test can catch this by accident."""


class ForeignError(BaseException):
    """An exception in the program. Its type is not passed on: a StopIteration would end a loop of the tests."""


class LateError(BaseException):
    """The processor time is used up."""


class Link:
    """Sends and receives one JSON message per line. Objects that are not of a built-in type are sent as references."""

    def __init__(self, read, write):
        self.read, self.write = os.fdopen(read, "rb"), os.fdopen(write, "wb")
        self.kept = []

    def send(self, message):
        self.write.write(json.dumps(message).encode() + b"\n")
        self.write.flush()

    def receive(self):
        line = self.read.readline(LONGEST + 1)
        if not line.endswith(b"\n"):
            raise EndedError("the program sent too much" if line else "the program ended early")
        return json.loads(line)

    def encode(self, value):
        """Encode a value; subclasses of built-in types become their base: a named tuple a tuple, a Counter a dict."""
        if value is None or type(value) in (bool, str, float):
            return value
        if isinstance(value, int):
            whole = int.__index__(value)
            return whole if abs(whole) < 1 << 64 else {"int": hex(whole)}
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, float):
            return float.__float__(value)
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, getattr(sys.modules.get("fractions"), "Fraction", ())):
            return {"fraction": [hex(value.numerator), hex(value.denominator)]}
        if isinstance(value, getattr(sys.modules.get("decimal"), "Decimal", ())):
            return {"decimal": str(value)}
        if isinstance(value, bytes | bytearray):
            return {"bytes": bytes(value).hex()}
        if isinstance(value, dict):
            return {"dict": [[self.encode(key), self.encode(dict.get(value, key))] for key in dict.keys(value)]}
        for name, kind in _BOXES.items():
            if isinstance(value, kind):
                return {name: [self.encode(item) for item in kind.__iter__(value)]}
        if isinstance(value, Remote):
            return {"kept": value.place}
        self.kept.append(value)
        return {"remote": len(self.kept) - 1}

    def decode(self, message):
        if not isinstance(message, dict):
            return message
        ((kind, inside),) = message.items()
        if kind in _BOXES:
            return _BOXES[kind](self.decode(item) for item in inside)
        if kind == "dict":
            return {self.decode(key): self.decode(value) for key, value in inside}
        if kind == "remote":
            return Remote(self, inside)
        if kind == "kept":
            return self.kept[inside]
        return _SCALARS[kind](inside)


class Remote:
    """An object of the program as the judge sees it: callable, iterable, and equal only to itself."""

    def __init__(self, link, place):
        self.link, self.place = link, place

    def __call__(self, *args, **kwargs):
        return self._ask("call", args, kwargs)

    def __iter__(self):
        return iter(self._ask("list", (), {}))

    def _ask(self, action, args, kwargs):
        link = self.link
        message = {"do": action, "on": self.place, "args": link.encode(args), "kwargs": link.encode(kwargs)}
        try:
            link.send(message)
        except BrokenPipeError:
            raise EndedError("the program ended early") from None
        return receive_value(link)


def receive_value(link):
    try:
        message = link.receive()
        if "value" in message:
            return link.decode(message["value"])
        name, text = message["error"]
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, MemoryError):
        raise EndedError("the program sent something unreadable") from None
    raise ForeignError(f"{name}: {text}")


def reply(link, work):
    """Send the value of the work or its error; an exit of the program counts as an error."""
    try:
        message = {"value": link.encode(work())}
    except BaseException as error:
        message = {"error": [type(error).__name__, str(error)[:1000]]}
    link.send(message)


def perform(job, link):
    """Run the program, send the names of it that the tests use, then answer calls."""
    reply(link, partial(define, job))
    while True:
        try:
            call = link.receive()
        except EndedError:
            return
        reply(link, partial(answer, link, call))


def define(job):
    """Run the whole program and return its names that the tests use.

    If that raises, as a failing example after the functions does, run it again without the statements that raise.
    """
    seconds = job["limits"]["seconds"]
    try:
        with cpu_limit(seconds / 2):
            space = fresh(job["before"])
            exec(compile(job["program"], "program", "exec", dont_inherit=True), space)
    except BaseException:
        space = fresh(job["before"])
        for statement in statements(job["program"]):
            with contextlib.suppress(BaseException), cpu_limit(seconds / 10):
                exec(statement, space)
    exec(compile(job["setup"], "program", "exec", dont_inherit=True), space)
    return {name: space[name] for name in job["names"] if name in space}


def fresh(before):
    """Return the names of a new module that can be imported, because dataclasses and pickle look it up."""
    module = sys.modules["program"] = types.ModuleType("program")
    exec(compile(before, "program", "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


def statements(program):
    flags = compile(program, "program", "exec", dont_inherit=True).co_flags & FUTURE
    for node in ast.parse(program).body:
        yield compile(ast.Module([node], []), "program", "exec", flags=flags, dont_inherit=True)


@contextlib.contextmanager
def cpu_limit(seconds):
    """Raise inside the block after this much processor time."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def stop_late(number, frame):
    raise LateError("took too long")


def answer(link, call):
    target = link.kept[call["on"]]
    if call["do"] == "list":
        return list(target)
    return target(*link.decode(call["args"]), **link.decode(call["kwargs"]))


def judge(job, link):
    """Run the tests in order and write the verdict as one line to a pipe that the program does not have."""
    space = {"__name__": "tests"}
    note, started = "", False
    try:
        exec(compile(job["prelude"], "tests", "exec"), space)
        names, started = receive_value(link), True
        # No others, because the program may send any name.
        space |= {name: names[name] for name in job["names"] if name in names}
        for test in job["tests"]:
            note = test.strip()
            exec(compile(test, "tests", "exec"), space)
        verdict = {"right": True, "note": ""}
    except AssertionError as error:
        verdict = {"right": False, "note": f"a test fails: {str(error) or note}"}
    except (EndedError, ForeignError) as error:
        started = started or isinstance(error, ForeignError)
        verdict = {"right": False, "note": str(error)}
    except BaseException as error:
        verdict = {"right": False, "note": f"{type(error).__name__}: {error}"}
    verdict["note"] = " ".join(verdict["note"].split())[:200]
    verdict["started"] = started
    os.write(job["handles"][2], json.dumps(verdict).encode() + b"\n")


def main(enter, limit, refuse_system_calls):
    """Confine this process by the functions of `confine.py`, whose text precedes this one, and do the job."""
    job = json.loads(sys.stdin.buffer.read())
    if job["method"] == "namespaces":
        enter(job["runtime"], job["limits"], job["outer"])
    elif sys.platform == "linux":
        with contextlib.suppress(*([OSError] if job["method"] == "rlimits" else [])):
            refuse_system_calls()
    limit(job["limits"])
    for handle in (0, 2):
        os.dup2(1, handle)  # no input, no error output
    for number in (signal.SIGXCPU, signal.SIGPROF):
        signal.signal(number, stop_late)
    link = Link(*job["handles"][:2])
    (judge if job["role"] == "judge" else perform)(job, link)
    os._exit(0)
