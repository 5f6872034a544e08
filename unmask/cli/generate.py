"""`unmask generate`: answer a prompt."""

import json as jsons
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unmask import api
from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.progress import watching
from unmask.runs.decoding import Decoding
from unmask.runs.output import Output
from unmask.runs.placement import Placement


@app.command()
@options.expand(*options.MANY, length=None)
def generate(
    prompt: options.PromptText,
    model: options.ModelName = options.MODEL,
    *,
    decoding: dict[str, Any],
    chat: options.Chat = False,
    trace: options.TraceFile = None,
    placement: dict[str, Any],
    json: options.Json = False,
) -> None:
    """Answer a prompt.

    \b
    Examples:
      unmask generate abc --length 8
      unmask generate abc --decoder 'vote(n=5, inner=low-confidence(temperature=0.8))' --json
      echo abc | unmask generate - --decoder 'ots(beams=4, block=4)' --trace abc.jsonl
    """
    show(api.generate, options.read_prompt(prompt, chat), model, decoding, placement, trace, json)


def show(
    answer: Callable[..., Output],
    prompt: Any,
    model: str,
    decoding: dict[str, Any],
    placement: dict[str, Any],
    trace: Path | None,
    json: bool,
) -> None:
    """Print the text alone, or everything as one JSON object."""
    Decoding.from_dict(decoding)  # refused before the model is loaded
    if trace is not None:
        api.check_writable(trace)
    loaded = Placement(**placement).load(model)
    with watching("decoding") as watch:
        output = answer(loaded, prompt, trace=trace or False, watch=watch, **decoding)
    print(jsons.dumps(output.json() | {"trace": trace and str(trace)}, ensure_ascii=False) if json else output.text)
