"""Arguments and options that several commands share, so that they read the same everywhere."""

import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask.cli.edge import read_stdin
from unmask.cli.run_options import Json as Json
from unmask.core import Decoder
from unmask.entries import field_comments
from unmask.errors import UnmaskError
from unmask.runs.bounds import MOST_ROWS
from unmask.runs.decoding import DECODER, Decoding
from unmask.runs.placement import Placement

MODEL = "tiny"  # what commands use when no model is named
DecodingFields = Annotated[dict[str, Any], Decoding]
PlacementFields = Annotated[dict[str, Any], Placement]
SHORT = {"decoder": "-d", "length": "-l", "seed": "-s", "problems": "-n"}
METAVARS = {
    "decoder": "SPEC",
    "guidance": "SCALE",
    "cache": "KIND",
    "stop": "TEXT",
    "precision": "WORD",
    "memory": "GB",
}


class Own(str):
    """In place of a default: words for what a command chooses itself where nothing is given."""


def shown(kind: type, name: str, show_default: bool | str = True) -> Any:
    """A field of a dataclass as an option; the comment beside the field is the help."""
    text, hint = field_comments(kind)[name][1], typing.get_type_hints(kind)[name]
    flag = "--compile" if name == "compiled" else "--" + name.replace("_", "-")
    metavar = None if hint is bool else METAVARS.get(name, "NAME" if hint in (str, str | None) else "N")
    repeated = "; repeatable" if typing.get_origin(hint) is tuple else ""
    flags = [flag, *([SHORT[name]] if name in SHORT else [])]
    words = f"{text[:1].upper()}{text[1:]}{repeated}."
    return typer.Option(*flags, metavar=metavar, help=words, show_default=show_default)


PromptText = Annotated[
    str | None, typer.Argument(metavar="PROMPT", help="The prompt; - reads it from standard input.", show_default=False)
]
PromptFile = Annotated[
    Path | None,
    typer.Option(
        "--prompts",
        metavar="FILE",
        help="Answer each line of this file; the answers are JSON lines. A line in double quotes is a JSON string, in "
        "which \\n is a line break; a .jsonl file also holds chat messages.",
    ),
]
ModelName = Annotated[str, typer.Option("--model", "-m", metavar="MODEL", help="A name from `unmask list models`.")]
Length = Annotated[int | None, shown(Decoding, "length")]
Problems = Annotated[int, typer.Option("--problems", "-n", metavar="N", min=1, help="How many.")]
Seed = Annotated[int, shown(Decoding, "seed")]
Chat = Annotated[bool, typer.Option("--chat", help="Put the prompt into the model's chat template as a user message.")]
TraceFile = Annotated[Path | None, typer.Option("--trace", metavar="FILE", help="Write a trace of the run here.")]
WayName = Annotated[
    str,
    typer.Option("--way", "-w", metavar="SPEC", help="How texts are scored: duel, elbo(n=128), path, a likelihood."),
]
ScoreBlock = Annotated[
    int | None,
    typer.Option(
        "--block",
        metavar="N",
        help="Tokens scored as a block; by default a block-causal model's own, else all of them.",
    ),
]
Watching = Annotated[bool, typer.Option("--watch", help="Show the texts on standard error as they fill.")]
MaxRows = Annotated[
    int | None,
    typer.Option("--max-rows", metavar="N", help=f"Rows that a problem may cost; {MOST_ROWS:,} by default."),
]


def expand(*omit: str, **defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each field of the dataclasses its parameters are annotated with, except `omit`.

    Such a parameter receives the given values as a dict. `defaults` replace those of the fields.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command)
        parameters: list[inspect.Parameter] = []
        expanded: dict[str, list[str]] = {}  # by parameter, its options
        for name, parameter in signature.parameters.items():
            kind = getattr(parameter.annotation, "__metadata__", (None,))[0]
            if is_dataclass(kind):
                options = [_option(kind, field, defaults) for field in fields(kind) if field.name not in omit]
                expanded[name] = [option.name for option in options]
                parameters += options
            else:
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

        @functools.wraps(command)
        def run(**values: Any) -> None:
            for owner, names in expanded.items():
                given = {name: values.pop(name) for name in names}
                values[owner] = {name: value for name, value in given.items() if value is not None}
            command(**values)

        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _option(kind: Any, field: Field[Any], defaults: dict[str, Any]) -> inspect.Parameter:
    hint, default = typing.get_type_hints(kind)[field.name], defaults.get(field.name, field.default)
    words = default if isinstance(default, Own) else True
    default = None if isinstance(default, Own) else default
    if hint is Decoder:
        hint, default = str, DECODER
    elif typing.get_origin(hint) is tuple:
        hint, default = list[str] | None, None
    elif default is None:
        hint = hint | None
    annotation = Annotated[hint, shown(kind, field.name, words)]
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def read_prompt(prompt: str, chat: bool = False) -> str | list[dict[str, str]]:
    """The prompt as given or from standard input, as a chat message if that is asked for."""
    if prompt == "-":
        try:
            prompt = read_stdin("the prompt").decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError:
            raise UnmaskError("the prompt on standard input is not UTF-8 text") from None
    if not prompt.strip():
        raise UnmaskError("the prompt is empty: write one, or - to read it from standard input")
    return [{"role": "user", "content": prompt}] if chat else prompt
