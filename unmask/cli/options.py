"""Arguments and options that several commands share, so that they read the same everywhere."""

import functools
import inspect
import sys
import typing
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask.cli.entries import field_comments
from unmask.core import Decoder
from unmask.errors import UnmaskError
from unmask.runs.decoding import DECODER, Decoding
from unmask.runs.placement import Placement

MODEL = "tiny"  # what commands use when no model is named
EXPANDED: dict[str, type] = {"decoding": Decoding, "placement": Placement}  # by the name of a command's parameter
FLAGS = {"compiled": ["--compile"], **{name: [f"--{name}", f"-{name[0]}"] for name in ("decoder", "length", "seed")}}
METAVARS = {
    "decoder": "SPEC",
    "guidance": "SCALE",
    "cache": "KIND",
    "stop": "TEXT",
    "precision": "WORD",
    "memory": "GB",
}


def shown(kind: type, name: str) -> Any:
    """A field of `Decoding` or `Placement` as an option; the comment beside the field is the help."""
    text, hint = field_comments(kind)[name][1], typing.get_type_hints(kind)[name]
    flags = FLAGS.get(name, ["--" + name.replace("_", "-")])
    metavar = None if hint is bool else METAVARS.get(name, "N" if hint in (int, int | None) else "NAME")
    repeated = "; repeatable" if typing.get_origin(hint) is tuple else ""
    return typer.Option(*flags, metavar=metavar, help=f"{text[:1].upper()}{text[1:]}{repeated}.")


PromptText = Annotated[str, typer.Argument(metavar="PROMPT", help="The prompt; - reads it from standard input.")]
ModelName = Annotated[str, typer.Option("--model", "-m", metavar="MODEL", help="A name from `unmask list models`.")]
Length = Annotated[int | None, shown(Decoding, "length")]
Problems = Annotated[int, typer.Option("--problems", "-n", metavar="N", min=1, help="How many.")]
Seed = Annotated[int, shown(Decoding, "seed")]
Compile = Annotated[bool, shown(Placement, "compiled")]
Chat = Annotated[bool, typer.Option("--chat", help="Put the prompt into the model's chat template as a user message.")]
TraceFile = Annotated[Path | None, typer.Option("--trace", metavar="FILE", help="Write a trace of the run here.")]
Device = Annotated[str | None, shown(Placement, "device")]
Dtype = Annotated[str | None, shown(Placement, "dtype")]
Precision = Annotated[str, shown(Placement, "precision")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def expand(*omit: str, **defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command one option for each field of its parameters `decoding` and `placement`, except those omitted.

    The command receives each of the two as a dict of the values given. `defaults` replace those of the fields.
    """

    names = {
        owner: [field.name for field in fields(kind) if field.name not in omit] for owner, kind in EXPANDED.items()
    }

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command)
        parameters: list[inspect.Parameter] = []
        for name, parameter in signature.parameters.items():
            if name in EXPANDED:
                parameters += [_parameter(EXPANDED[name], each, defaults) for each in names[name]]
            else:
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

        @functools.wraps(command)
        def run(**values: Any) -> None:
            for owner in EXPANDED.keys() & signature.parameters:
                given = {name: values.pop(name) for name in names[owner]}
                values[owner] = {name: value for name, value in given.items() if value is not None}
            command(**values)

        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _parameter(kind: type, name: str, defaults: dict[str, Any]) -> inspect.Parameter:
    hint = typing.get_type_hints(kind)[name]
    default = defaults.get(name, next(field.default for field in fields(kind) if field.name == name))
    if hint is Decoder:
        hint, default = str, DECODER
    elif typing.get_origin(hint) is tuple:
        hint, default = list[str] | None, None
    elif default is None:
        hint = hint | None
    annotation = Annotated[hint, shown(kind, name)]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def read_prompt(prompt: str, chat: bool = False) -> str | list[dict[str, str]]:
    """The prompt as given or from standard input, as a chat message if that is asked for."""
    if prompt == "-":
        try:
            prompt = sys.stdin.buffer.read().decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError:
            raise UnmaskError("the prompt on standard input is not UTF-8 text") from None
    if not prompt.strip():
        raise UnmaskError("the prompt is empty: write one, or - to read it from standard input")
    return [{"role": "user", "content": prompt}] if chat else prompt
