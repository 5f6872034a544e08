"""`unmask generate`: answer a prompt."""

import json as jsons
from collections.abc import Callable
from typing import Any

from unmask import api
from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.progress import watching
from unmask.cli.watch import watched
from unmask.runs.decoding import Decoding
from unmask.runs.output import Output
from unmask.runs.placement import Placement


def add_command(answer: Callable[..., Output], text: str, *omit: str, **defaults: Any) -> None:
    """A command that prints the text alone, or everything as one JSON object; `text` is its help."""

    @app.command(answer.__name__, help=text)
    @options.expand("precision", "batch", "memory", *omit, **defaults)  # those are for many problems
    def command(
        prompt: options.PromptText,
        model: options.ModelName = options.MODEL,
        *,
        decoding: options.DecodingFields,
        chat: options.Chat = False,
        trace: options.TraceFile = None,
        watch: options.Watching = False,
        placement: options.PlacementFields,
        json: options.Json = False,
    ) -> None:
        message = options.read_prompt(prompt, chat)
        Decoding.from_dict(decoding)  # refused before the model is loaded
        if trace is not None:
            api.check_writable(trace)
        loaded = Placement(**placement).load(model)
        with watched(loaded) if watch else watching("decoding") as see:
            output = answer(loaded, message, trace=trace or False, watch=see, **decoding)
        whole = output.json() | {"trace": trace and str(trace)}
        print(jsons.dumps(whole, ensure_ascii=False) if json else output.text)


HELP = """Answer a prompt.

\b
Examples:
  unmask generate abc --length 8
  unmask generate abc --decoder 'vote(n=5, inner=low-confidence(temperature=0.8))' --json
  echo abc | unmask generate - --decoder 'ots(beams=4, block=4)' --trace abc.jsonl
  unmask generate abc --decoder search --watch
"""
add_command(api.generate, HELP, length=None)
