"""The command line's frame: one application, one way to end. Each command is a file beside this one."""

import os
import sys
from typing import Any

import typer

from unmask.core.errors import UnmaskError, nearest

app = typer.Typer(
    name="unmask",
    help="Decode masked diffusion language models by searching over order and tokens.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Bad input ends with one sentence on standard error and exit code 2; only answers go to standard output."""
    command = typer.main.get_command(app)
    try:
        code = command.main(prog_name="unmask", standalone_mode=False)
    except UnmaskError as error:
        sys.exit(_refuse(str(error)))
    except (typer.Abort, KeyboardInterrupt):
        print("unmask: stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:
        # typer brings a click of its own or the real one, by version: its refusals are known by what they can do.
        if not hasattr(error, "format_message"):
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message(), file=sys.stderr)  # pyright: ignore[reportAttributeAccessIssue]
            sys.exit(2)
        sys.exit(_refuse(_sentence(error, command)))
    sys.exit(code if isinstance(code, int) else 0)


def _refuse(sentence: str) -> int:
    print(f"unmask: {' '.join(sentence.split())}", file=sys.stderr)
    return 2


def _sentence(error: Any, command: Any) -> str:
    """Click's words, with the nearest command where one was misspelt."""
    said = error.format_message()
    if said.startswith("No such command"):
        wrong = said.split("'")[1]
        group = getattr(getattr(error, "ctx", None), "command", command)  # the one whose command was misspelt
        return f"no command {wrong!r}: {nearest(wrong, group.commands)}"
    return said or "a command is missing: see unmask --help"
