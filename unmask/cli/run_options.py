"""Options of commands that run or grade tasks. This file does not load torch, which grading does not need."""

from pathlib import Path
from typing import Annotated, Any

import typer

from unmask.errors import UnmaskError, nearest

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
