"""Options of commands that run or grade tasks. This file does not load torch, which grading does not need. Options of a command from a TOML file: `--config run.toml`, and `--dump-config`, which writes one.

    model = "tiny"
    task = ["countdown"]
    decoder = ["low-confidence", "ots(beams=4)"]
    length = 64
    limit = 20
    out = "runs/first"

A key is an option's name without the dashes. What is typed beside `--config` comes before what the file says. Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

import functools
import inspect
import json
import tomllib
import typing
from collections.abc import Callable
from dataclasses import Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask.cli.boundary import read_stdin
from unmask.core import Decoder
from unmask.describe import field_comments
from unmask.errors import UnmaskError, nearest
from unmask.runs.settings import DECODER, MAX_FORWARD_PASSES, Decoding, Placement

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
RunFolder = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="The run's folder; an unfinished run resumes.")
]
MetricName = Annotated[str, typer.Option("--metric", help="ours, or d1 for figures that compare with published ones.")]
DataFolder = Annotated[str | None, typer.Option("--data", metavar="DIR", help="The folder of the benchmark files.")]
Wording = Annotated[str | None, typer.Option("--prompts", metavar="FILE", help="A JSON file with another wording.")]
AllowCode = Annotated[bool, typer.Option("--allow-code", help="Run programs that a model wrote.")]
Sandbox = Annotated[
    str | None, typer.Option("--sandbox", help="namespaces, or rlimits: weaker, and background processes outlive it.")
]
EngineName = Annotated[str, typer.Option("--engine", help="local: this process; ray: workers on one or many machines.")]
Workers = Annotated[int | None, typer.Option("--workers", metavar="N", help="Of Ray; by default one per GPU or core.")]
Address = Annotated[
    str | None, typer.Option("--address", metavar="A", help="Of a Ray cluster; by default one is started here.")
]
Retry = Annotated[bool, typer.Option("--retry", help="Try failed problems again.")]


def repeatable(*flags: str, metavar: str, help: str) -> Any:
    return typer.Option(*flags, metavar=metavar, help=help + "; repeatable.")


def one_of(known: Any, flag: str, word: str | None) -> Any:
    """A word of a Literal type, or a refusal that names the nearest."""
    if word is not None and word not in known.__args__:
        raise UnmaskError(f"{flag} cannot be {word!r}: {nearest(word, known.__args__)}")
    return word


@dataclass(frozen=True)
class CommandOptions:
    """What `--config` becomes: the options of the command, whether they were typed, read from the file or left open."""

    context: Any

    @property
    def known(self) -> dict[str, Any]:
        """By the longest name without dashes, apart from those that are about the file itself."""
        named = {max(option.opts, key=len).lstrip("-"): option for option in self.context.command.params}
        return {name: option for name, option in named.items() if name not in ("config", "dump-config", "help")}

    def load(self, path: Path) -> None:
        """Makes the file's values the defaults of the options."""
        values = {key.replace("_", "-"): value for key, value in _read(path).items()}
        for key, value in values.items():
            if key not in self.known:
                raise UnmaskError(f"{str(path)!r} sets {key!r}, which is no option: {nearest(key, self.known)}")
            if any(isinstance(each, dict) for each in (value if isinstance(value, list) else [value])):
                raise UnmaskError(f"{key} in {str(path)!r} is a table: write a value, such as {key} = 'ots(beams=4)'")
        self.context.default_map = {
            self.known[key].name: [value] if self.known[key].multiple and not isinstance(value, list) else value
            for key, value in values.items()
        }

    def dump(self) -> str:
        """Every option that has a value, and the others as comments."""
        lines = []
        for name, option in self.known.items():
            value = self.context.params.get(option.name)
            empty = value is None or value == () or value == []
            lines.append(f"# {name} =  # {option.help}" if empty else f"{name} = {_toml(value)}")
        return "\n".join(lines)

    def require(self, *names: str) -> None:
        """Options that a file may give are not required by the parser."""
        for name in names:
            if not self.context.params.get(self.known[name].name):
                raise UnmaskError(f"Missing option '--{name}': give it here, or in a file by --config")


def _load(context, path):  # without annotations typer passes both
    options = CommandOptions(context)
    if path is not None and not context.resilient_parsing:
        options.load(path)
    return options


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise UnmaskError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnmaskError(f"{str(path)!r} is not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UnmaskError(f"{str(path)!r} is not TOML: {error}") from None


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


ConfigFile = Annotated[
    CommandOptions,
    typer.Option(
        "--config", metavar="FILE", is_eager=True, parser=Path, callback=_load, help="Read options from a TOML file."
    ),
]
DumpConfig = Annotated[
    bool, typer.Option("--dump-config", help="Print the options as a file for --config, and do nothing else.")
]


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
ScorerName = Annotated[
    str,
    typer.Option("--scorer", "-w", metavar="SPEC", help="How texts are scored: duel, elbo(n=128), path, a likelihood."),
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
MaxForwardPasses = Annotated[
    int | None,
    typer.Option(
        "--max-forward-passes", metavar="N", help=f"Rows that a problem may cost; {MAX_FORWARD_PASSES:,} by default."
    ),
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
