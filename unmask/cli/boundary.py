"""Where the command line meets the world: words and streams that may be anything, and the one way each failure ends."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from typer.core import TyperGroup

from unmask import ascii_output as spelling
from unmask.errors import UnmaskError

TRACEBACK = "UNMASK_TRACEBACK"  # if set, an error that was not foreseen shows where it arose
REASONS = {
    errno.ENOSPC: "there is no room left on the device",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.ENOTDIR: "a part of this path is a file",
    errno.EACCES: "permission is missing",
    errno.EPERM: "permission is missing",
}


class Interrupted(Exception):  # noqa: N818  not an error
    """The user stopped a command; the sentence says what is kept."""


class PipeClosed(Exception):  # noqa: N818  not an error
    """Whoever read the answer has seen enough."""


class Edge(TyperGroup):
    """Keeps end-of-file, closed pipes and Ctrl-C from click, which would answer them in its own way."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted("stopped") from None
        except BrokenPipeError:
            raise PipeClosed from None
        except EOFError as error:
            raise UnmaskError(f"a file ended too early: {error}") from None


def check_words(words: Sequence[str]) -> None:
    for place, word in enumerate(words, 1):
        try:
            word.encode()
        except UnicodeEncodeError:
            raise UnmaskError(f"argument {place} is not UTF-8 text: {os.fsencode(word)!r}") from None


def prepare_streams() -> None:
    """Characters that a stream cannot encode are spelt in ASCII; a command whose answer nobody can get is refused."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=spelling.ERRORS)
    if sys.stdout is None:
        raise UnmaskError("standard output is closed: send it to a file or to /dev/null")


def print_json(value: Any) -> None:
    """One line; in ASCII where standard output takes no more."""
    unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") == "utf8"
    print(json.dumps(_finite(value), ensure_ascii=not unicode, allow_nan=False), flush=True)


def _finite(value: Any) -> Any:
    """JSON knows no infinity."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_stdin(what: str) -> bytes:
    if sys.stdin is None:
        raise UnmaskError(f"standard input is closed: {what} is read from it")
    return sys.stdin.buffer.read()


def explain(error: BaseException) -> str | None:
    """An error of the machine or of a file in a sentence; None for one that was not foreseen."""
    if isinstance(error, OSError):
        name = f"{os.fspath(error.filename)!r}: " if isinstance(error.filename, str | os.PathLike) else ""
        return f"{name}{REASONS.get(error.errno or 0, error.strerror or str(error))}"
    if isinstance(error, MemoryError) or "allocate memory" in str(error) or "CUDA out of memory" in str(error):
        return "the memory is not enough for this: choose a smaller batch, length or number of rows"
    if isinstance(error, UnicodeError):
        return f"a text cannot be encoded or decoded: {error}"
    if isinstance(error, RecursionError):
        return "the input is nested too deeply"
    if isinstance(error, KeyError | OverflowError):
        return f"{type(error).__name__} {error}: a name is missing or a number too large; {TRACEBACK}=1 shows where"
    return None


@contextmanager
def resumable(kept: Callable[[], str]) -> Iterator[None]:
    """A command that goes on where it was stopped: one line says what is kept, and how."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"stopped: {kept()}; go on with: {typed()}") from None


def typed() -> str:
    """The command as it was typed."""
    return shlex.join(["unmask", *sys.argv[1:]])
