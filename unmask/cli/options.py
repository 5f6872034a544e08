"""Arguments and options that several commands share. This module, like the commands, is imported without torch.

`expand` makes an option of every field of a settings dataclass.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from unmask.describe import FieldText, source_constant, source_fields

MODEL = "tiny"  # the model of a command when none is named
SCORER = source_constant("unmask.runs.scoring", "SCORER")
DECODER = source_constant("unmask.runs.settings", "DECODER")
MAX_FORWARD_PASSES = source_constant("unmask.runs.settings", "MAX_FORWARD_PASSES")


@dataclass(frozen=True)
class TaskOptions:
    """How problems are read and graded. The comments of these classes are the help of their options."""

    metric: Literal["ours", "d1"] = "ours"  # grading rules; d1 to compare with published results
    data: str | None = None  # folder of the benchmark files
    prompts: str | None = None  # JSON file with replacement prompts
    allow_code: bool = False  # run programs that a model wrote
    sandbox: Literal["namespaces", "rlimits"] | None = None  # isolation; weaker: rlimits (background processes survive)

    def settings(self) -> dict[str, Any]:
        """Return the settings of tasks, after making the data folder known."""
        from unmask.tasks import data

        if self.data is not None:
            data.use(self.data)
        return {"prompts": self.prompts, "allow_code": self.allow_code, "sandbox": self.sandbox}


@dataclass(frozen=True)
class EngineOptions:
    """The engine that decodes a run's problems."""

    engine: Literal["local", "ray"] = "local"  # this process, or Ray workers on one or many machines
    workers: int | None = None  # number of Ray workers; default: one per GPU, else one per core
    address: str | None = None  # address of a Ray cluster; default: start one here
    retry: bool = False  # run failed problems again

    @property
    def local(self) -> bool:
        return self.engine == "local"

    def make(self) -> Any:
        from unmask.runs.engine import make_engine

        return make_engine(self.engine, self.workers, self.address)


# Parameters with these annotations receive the given options as a dict (see `expand`).
DecodingFields = Annotated[dict[str, Any], ("unmask.runs.settings", "Decoding")]
PlacementFields = Annotated[dict[str, Any], ("unmask.runs.settings", "Placement")]
TaskFields = Annotated[dict[str, Any], (__name__, "TaskOptions")]
EngineFields = Annotated[dict[str, Any], (__name__, "EngineOptions")]

TYPES: dict[str, Any] = {"int": int, "float": float, "str": str, "bool": bool, "Decoder": str, "Path": Path}
TYPES |= {"list[int]": list[int], "list[str]": list[str], "tuple[str, ...]": list[str], "tuple[Check, ...]": list[str]}
LETTERS = {"decoder": "-d", "length": "-l", "model": "-m", "out": "-o", "problems": "-n", "seed": "-s", "task": "-t"}
METAVARS = {"decoder": "SPEC", "task": "SPEC", "model": "MODEL", "guidance": "SCALE", "cache": "KIND", "stop": "TEXT"}
METAVARS |= {"check": "SPEC"}
METAVARS |= {"memory": "GB", "data": "DIR", "compact": "DIR", "out": "PATH", "prompts": "FILE"}
DEFAULT_METAVARS = {str: "NAME", list[str]: "NAME", Path: "FILE"}  # N for numbers


class Own(str):
    """Words that the help shows in place of a default that is chosen later."""


def expand(*omit: str, **defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each field of the dataclasses its parameters are annotated with, except `omit`.

    Such a parameter receives a dict of the values that are not None. `defaults` replace those of the fields. A field
    of a name that an earlier parameter has is left out.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        expanded: dict[str, list[str]] = {}  # option names by parameter
        left_out = {*omit, *signature.parameters}
        for name, parameter in signature.parameters.items():
            source = getattr(parameter.annotation, "__metadata__", (None,))[0]
            if isinstance(source, tuple):
                texts = {field: text for field, text in source_fields(*source).items() if field not in left_out}
                parameters += [_parameter(field, text, defaults) for field, text in texts.items()]
                left_out |= texts.keys()
                expanded[name] = list(texts)
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


def _parameter(name: str, text: FieldText, defaults: dict[str, Any]) -> inspect.Parameter:
    """Return a field of a dataclass as an option."""
    default = defaults.get(name, DECODER if text.annotation == "Decoder" else text.default)
    hint: Any = Literal[text.choices] if text.choices else TYPES[text.annotation.removesuffix(" | None")]
    repeated = typing.get_origin(hint) is list
    metavar = None if hint is bool or text.choices else METAVARS.get(name, DEFAULT_METAVARS.get(hint, "N"))
    flag = "--compile" if name == "compiled" else "--" + name.replace("_", "-")
    flags = [flag, LETTERS[name]] if name in LETTERS else [flag]
    help = f"{text.comment[:1].upper()}{text.comment[1:]}{'; repeatable' if repeated else ''}."
    shown = default if isinstance(default, Own) else True
    if repeated or default is None or isinstance(default, Own):
        hint, default = hint | None, None
    annotation = Annotated[hint, option(help, *flags, metavar=metavar, show_default=shown)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def option(help: str, *flags: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(*flags, metavar=metavar, help=help, **more)


MOST = f"{MAX_FORWARD_PASSES:,}"
SCORE_BLOCK = "Tokens scored as a block; default: the block of a block-causal model, else all tokens."
SCORER_HELP = "Scoring method: duel, elbo(n=128), path, or a likelihood."
Json = Annotated[bool, option("Print one JSON object.", "--json")]
ModelName = Annotated[str, option("A name from `unmask list models`.", "--model", "-m", metavar="MODEL")]
Seed = Annotated[int, option("Seed of all random numbers.", "--seed", "-s", metavar="N")]
Chat = Annotated[bool, option("Put the prompt into the model's chat template as a user message.", "--chat")]
RunFolders = Annotated[list[str], typer.Argument(metavar="DIR…", help="Folders that `unmask eval` wrote.")]
MaxForwardPasses = Annotated[
    int | None, option("Largest number of forward passes per problem.", metavar="N", show_default=MOST)
]
ScorerName = Annotated[str, option(SCORER_HELP, "--scorer", "-w", metavar="SPEC")]
ScoreBlock = Annotated[int | None, option(SCORE_BLOCK, metavar="N")]
