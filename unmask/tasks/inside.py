"""What runs inside the sandbox: the program's side and the judge's side, two processes that share nothing but
two pipes.

Sent as text to a fresh interpreter behind `jail.py`, so it knows the standard library only.

The program's process defines the functions and answers calls. The judge's process, in a sandbox of its own,
runs the tests: there a function of the program is a `Far` object that sends its arguments over and gets a
value back, rebuilt from plain built-in types. Comparisons therefore happen where the program cannot reach: it
can say any value, but no equality of its own, no patched builtin and no early exit has a say in the verdict.
"""

# pyright: basic
import json
import os
import sys
from functools import partial

LONGEST = 8 << 20  # bytes of one message
_BOXES = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


class EndedError(BaseException):
    """The other side is gone, or says what cannot be read; no test can swallow it."""


class ForeignError(BaseException):
    """An exception in the program. Its own kind stays there: a StopIteration would end a test's loop early."""


class Link:
    """One JSON message a line, each way. Objects that are not plain stay where they are and travel as numbers."""

    def __init__(self, read, write):
        self.read, self.write = os.fdopen(read, "rb"), os.fdopen(write, "wb")
        self.kept = []

    def send(self, message):
        self.write.write(json.dumps(message).encode() + b"\n")
        self.write.flush()

    def receive(self):
        line = self.read.readline(LONGEST + 1)
        if not line.endswith(b"\n"):
            raise EndedError("the program said too much" if line else "the program ended early")
        return json.loads(line)

    def encode(self, value):
        """Subclasses of built-in types travel as their base: a named tuple is a tuple, a Counter a dict."""
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
        if isinstance(value, bytes | bytearray):
            return {"bytes": bytes(value).hex()}
        if isinstance(value, dict):
            return {"dict": [[self.encode(key), self.encode(dict.get(value, key))] for key in dict.keys(value)]}
        for name, kind in _BOXES.items():
            if isinstance(value, kind):
                return {name: [self.encode(item) for item in kind.__iter__(value)]}
        if isinstance(value, Far):
            return {"kept": value.place}
        self.kept.append(value)
        return {"far": len(self.kept) - 1}

    def decode(self, said):
        if not isinstance(said, dict):
            return said
        ((kind, inside),) = said.items()
        if kind in _BOXES:
            return _BOXES[kind](self.decode(item) for item in inside)
        if kind == "dict":
            return {self.decode(key): self.decode(value) for key, value in inside}
        if kind == "far":
            return Far(self, inside)
        if kind == "kept":
            return self.kept[inside]
        return {
            "int": lambda: int(inside, 16),
            "complex": lambda: complex(*inside),
            "bytes": lambda: bytes.fromhex(inside),
        }[kind]()


class Far:
    """An object of the program as the judge sees it: called, gone through or handed back; equal to itself only."""

    def __init__(self, link, place):
        self.link, self.place = link, place

    def __call__(self, *args, **kwargs):
        return self._ask("call", args, kwargs)

    def __iter__(self):
        return iter(self._ask("list", (), {}))

    def _ask(self, what, args, kwargs):
        link = self.link
        message = {"do": what, "on": self.place, "args": link.encode(args), "kwargs": link.encode(kwargs)}
        try:
            link.send(message)
        except BrokenPipeError:
            raise EndedError("the program ended early") from None
        return hear(link)


def hear(link):
    try:
        said = link.receive()
        if "value" in said:
            return link.decode(said["value"])
        name, words = said["error"]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, MemoryError):
        raise EndedError("what the program said cannot be read") from None
    raise ForeignError(f"{name}: {words}")


def reply(link, work):
    """Do the work and say its value or its error; the program's exits are errors too."""
    try:
        said = {"value": link.encode(work())}
    except BaseException as error:
        said = {"error": [type(error).__name__, str(error)[:1000]]}
    link.send(said)


def perform(job, link):
    """The program's side: run the program, say which of the asked-for names it has, then answer calls."""
    space = {"__name__": "program"}

    def start():
        for part in (job["program"], job["setup"]):
            exec(compile(part, "program", "exec"), space)
        return {name: space[name] for name in job["names"] if name in space}

    reply(link, start)
    while True:
        try:
            asked = link.receive()
        except EndedError:
            return
        reply(link, partial(answer, link, asked))


def answer(link, asked):
    target = link.kept[asked["on"]]
    if asked["do"] == "list":
        return list(target)
    return target(*link.decode(asked["args"]), **link.decode(asked["kwargs"]))


def judge(job, link):
    """The judge's side: every test in order; the verdict is one line on a pipe that no program holds."""
    space = {"__name__": "tests"}
    note = ""
    try:
        exec(compile(job["prelude"], "tests", "exec"), space)
        said = hear(link)
        space |= {name: said[name] for name in job["names"] if name in said}  # and no other: it may say anything
        for test in job["tests"]:
            note = test.strip()
            exec(compile(test, "tests", "exec"), space)
        verdict = {"right": True, "note": ""}
    except AssertionError as error:
        verdict = {"right": False, "note": f"a test fails: {str(error) or note}"}
    except (EndedError, ForeignError) as error:
        verdict = {"right": False, "note": str(error)}
    except BaseException as error:
        verdict = {"right": False, "note": f"{type(error).__name__}: {error}"}
    verdict["note"] = " ".join(verdict["note"].split())[:200]
    os.write(job["handles"][2], json.dumps(verdict).encode() + b"\n")


def main(enter, limit):
    """Both from `jail.py`, which stands above this text when it is sent."""
    job = json.loads(sys.stdin.buffer.read())
    if job["enter"]:
        enter(**job["enter"])
    limit(**job["limits"])
    for handle in (0, 2):
        os.dup2(1, handle)  # nothing to read, nowhere to complain
    link = Link(*job["handles"][:2])
    (judge if job["role"] == "judge" else perform)(job, link)
    os._exit(0)
