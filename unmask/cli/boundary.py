"""The process boundary of the command line: arguments, streams, signals, exit codes and one sentence per failure."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from typer.core import TyperGroup

from unmask.errors import UnmaskError, nearest
from unmask.runs.files import REASONS, finite_values

TRACEBACK = "UNMASK_TRACEBACK"  # if set, an unexpected error shows its traceback
WANTED = {"int": "a whole number", "float": "a number", "bool": "true or false"}  # by pydantic's type of error
QUOTED = r"'([^']*)'"
CHOICE = re.compile(rf"{QUOTED} is not one of (.+)")  # click's message for a value of a Literal option


class Interrupted(Exception):  # noqa: N818  not an error
    """The user stopped a command; the sentence says what is saved."""


class PipeClosed(Exception):  # noqa: N818  not an error
    """Standard output was closed by its reader."""


class CommandGroup(TyperGroup):
    """All commands, sorted by name. End-of-file, closed pipes and Ctrl-C are kept from click's own handling."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted("stopped") from None
        except BrokenPipeError:
            raise PipeClosed from None
        except EOFError as error:
            raise UnmaskError(f"a file ended too early: {error}") from None


def run(command: Any) -> NoReturn:
    """Run a command. Bad input ends with one sentence on standard error and exit code 2."""
    try:
        _prepare()
        code = command.main(prog_name="unmask", standalone_mode=False)
        sys.stdout.flush()  # a full disk is noticed here, and not while Python exits
    except (Interrupted, UnmaskError) as error:
        _refuse(str(error), 130 if isinstance(error, Interrupted) else 2)
    except (PipeClosed, BrokenPipeError):
        _end(141)
    except Exception as error:
        # Depending on its version, typer has its own click or the real one: errors are recognized by their methods.
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message(), file=sys.stderr)  # pyright: ignore[reportAttributeAccessIssue]
            _end(2)
        sentence = usage_error(error, command) if hasattr(error, "format_message") else explain(error)
        if sentence is None or os.environ.get(TRACEBACK):
            raise
        _refuse(sentence)
    sys.exit(code if isinstance(code, int) else 0)


def _refuse(sentence: str, code: int = 2) -> NoReturn:
    print(f"unmask: {' '.join(sentence.split())}", file=sys.stderr)
    _end(code)


def _end(code: int) -> NoReturn:
    """Exit; output that the stream does not accept is dropped, so that Python does not report it while it exits."""
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def usage_error(error: Any, command: Any) -> str:
    """Return click's sentence, or our own for unknown commands, unknown options and values of the wrong type."""
    text = error.format_message()
    flag = max(getattr(getattr(error, "param", None), "opts", [""]), key=len)
    if choice := CHOICE.search(text):
        return f"unknown {flag} {choice[1]!r}: {nearest(choice[1], re.findall(QUOTED, choice[2]))}"
    if wrong := getattr(error.__cause__, "errors", list)():  # from pydantic, which reads values for typer
        return f"{flag} must be {_constraint(**wrong[0])}, got {wrong[0]['input']!r}"
    if text.startswith("No such option") and (hint := _decoder_setting(error.option_name, error.ctx)):
        return hint
    if text.startswith("No such command"):
        word = text.split("'")[1]
        group = getattr(getattr(error, "ctx", None), "command", command)  # the group in which the command is unknown
        return f"unknown command {word!r}: {nearest(word, group.commands)}"
    return text or "a command is missing: see unmask --help"


def _constraint(type: str, msg: str, **_: Any) -> str:
    """Return what pydantic expected of a number."""
    text = msg.removeprefix("Input should be ").replace("greater than or equal to", "at least")
    return WANTED.get(type.partition("_")[0], text.replace("less than or equal to", "at most"))


def _decoder_setting(option: str, context: Any) -> str | None:
    """Explain an option that the command does not have but a decoder does."""
    if all(each.name != "decoder" for each in context.command.params):
        return None
    import unmask.decoders  # noqa: F401  registers the decoders
    from unmask.runs.settings import decoder_with

    name = option.lstrip("-").replace("-", "_")
    decoder = decoder_with(name)
    return decoder and f"{option} is a setting of decoders: write --decoder '{decoder}({name}=…)'"


def explain(error: BaseException) -> str | None:
    """Return the sentence for an error of the machine or of a file; None for an unexpected error."""
    if isinstance(error, OSError):
        name = f"{os.fspath(error.filename)!r}: " if isinstance(error.filename, str | os.PathLike) else ""
        return f"{name}{REASONS.get(error.errno or 0, error.strerror or str(error))}"
    if isinstance(error, MemoryError) or "allocate memory" in str(error) or "CUDA out of memory" in str(error):
        return "out of memory: choose a smaller batch, length or number of beams"
    if isinstance(error, UnicodeError):
        return f"a text cannot be encoded or decoded: {error}"
    if isinstance(error, RecursionError):
        return "the input is nested too deeply"
    if isinstance(error, KeyError | OverflowError):
        return f"{type(error).__name__} {error}: a name is missing or a number too large; {TRACEBACK}=1 shows where"
    return None


def _prepare() -> None:
    """Refuse a closed standard output and words that are not text; print escapes where a stream has only ASCII."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        raise UnmaskError("standard output is closed: redirect it to a file or to /dev/null")
    for place, word in enumerate(sys.argv[1:], 1):
        if re.search(r"[\ud800-\udfff]", word):  # how Python writes bytes that are not UTF-8
            raise UnmaskError(f"argument {place} is not UTF-8 text: {os.fsencode(word)!r}")


def print_json(value: Any) -> None:
    """Print one line of JSON, in ASCII if standard output is not UTF-8."""
    unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") == "utf8"
    print(json.dumps(finite_values(value), ensure_ascii=not unicode, allow_nan=False), flush=True)


def print_answer(json: bool, facts: Any, text: str) -> None:
    """Print the answer of a command as one line of JSON or as text."""
    print_json(facts) if json else print(text)


def read_text(path: str | Path, what: str, errors: str = "strict") -> str:
    """Return the UTF-8 text of a file, or of standard input for `-`."""
    name = f"{what} on standard input" if str(path) == "-" else repr(str(path))
    try:
        if str(path) != "-":
            return Path(path).read_bytes().decode("utf-8-sig", errors)
        if sys.stdin is None:
            raise UnmaskError(f"standard input is closed: {what} is read from it")
        return sys.stdin.buffer.read().decode("utf-8-sig", errors)
    except UnicodeDecodeError:
        raise UnmaskError(f"{name} is not UTF-8 text") from None
    except OSError as error:
        raise UnmaskError(f"{name} cannot be read: {error.strerror}") from None


@contextmanager
def resumable(saved: Callable[[], str]) -> Iterator[None]:
    """On Ctrl-C, say what is saved and which command resumes."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"stopped: {saved()}; resume with: {typed()}") from None


def typed() -> str:
    """Return the command as it was typed."""
    return shlex.join(["unmask", *sys.argv[1:]])
