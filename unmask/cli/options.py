"""Arguments and options that several commands share, so that they read the same everywhere."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask.errors import UnmaskError, nearest

MODEL = "tiny"  # what commands use when no model is named

PromptText = Annotated[str, typer.Argument(metavar="PROMPT", help="The prompt; - reads it from standard input.")]
ModelName = Annotated[str, typer.Option("--model", "-m", metavar="MODEL", help="A name from `unmask list models`.")]
DecoderSpec = Annotated[
    str, typer.Option("--decoder", "-d", metavar="SPEC", help="A decoder and its settings, such as ots(beams=4).")
]
Length = Annotated[int | None, typer.Option("--length", "-l", metavar="N", help="Masks after the prompt.")]
Problems = Annotated[int, typer.Option("--problems", "-n", metavar="N", min=1, help="How many.")]
Seed = Annotated[int, typer.Option("--seed", "-s", metavar="N", help="Same seed, same answer.")]
Guidance = Annotated[
    float, typer.Option("--guidance", metavar="SCALE", help="Classifier-free guidance; twice the rows when above 0.")
]
Suppress = Annotated[bool, typer.Option("--suppress", help="Never write end-of-text.")]
EarlyEnd = Annotated[
    bool,
    typer.Option(
        "--early-end", help="Compute nothing after an answer's end-of-text. Approximate: tiny loses nothing by it."
    ),
]
Cache = Annotated[
    str,
    typer.Option(
        "--cache",
        metavar="KIND",
        help="Keep keys and values through a block: none, prefix, dual, or dual(refresh=4), which computes all anew "
        "every 4 steps. Approximate: tiny loses 5, 6 and 1 points by the last three.",
    ),
]
Compile = Annotated[bool, typer.Option("--compile", help="Fuse the layers' operations; on a GPU, after a wait.")]
Stop = Annotated[list[str] | None, typer.Option("--stop", metavar="TEXT", help="Cut the text before this; repeatable.")]
Chat = Annotated[bool, typer.Option("--chat", help="Put the prompt into the model's chat template as a user message.")]
TraceFile = Annotated[Path | None, typer.Option("--trace", metavar="FILE", help="Write the decoding's trace here.")]
Device = Annotated[str | None, typer.Option("--device", metavar="NAME", help="cpu or cuda; a GPU where there is one.")]
Dtype = Annotated[
    str | None, typer.Option("--dtype", metavar="NAME", help="float32, bfloat16, …; the model's own without it.")
]
Precision = Annotated[
    str, typer.Option("--precision", metavar="WORD", help="Of float32 products: highest, or high for TF32 on a GPU.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def read_prompt(prompt: str, chat: bool = False) -> str | list[dict[str, str]]:
    """The prompt as given or from standard input, as a chat message where that was asked for."""
    if prompt == "-":
        try:
            prompt = sys.stdin.buffer.read().decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError:
            raise UnmaskError("the prompt on standard input is not UTF-8 text") from None
    if not prompt.strip():
        raise UnmaskError("the prompt is empty: write one, or - to read it from standard input")
    return [{"role": "user", "content": prompt}] if chat else prompt


def one_of(known: Any, flag: str, word: str | None) -> Any:
    """A word of a Literal type, or a refusal that names the nearest."""
    if word is not None and word not in known.__args__:
        raise UnmaskError(f"{flag} cannot be {word!r}: {nearest(word, known.__args__)}")
    return word
