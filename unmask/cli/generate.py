"""`unmask generate`: one answer."""

import json as jsons
from pathlib import Path

from unmask import api
from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.progress import watching
from unmask.models.cache import make_cache
from unmask.runs.output import Output


@app.command()
def generate(
    prompt: options.PromptText,
    model: options.ModelName = options.MODEL,
    decoder: options.DecoderSpec = api.DECODER,
    length: options.Length = None,
    seed: options.Seed = 0,
    guidance: options.Guidance = 0.0,
    suppress: options.Suppress = False,
    early_end: options.EarlyEnd = False,
    cache: options.Cache = "none",
    stop: options.Stop = None,
    chat: options.Chat = False,
    trace: options.TraceFile = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    compiled: options.Compile = False,
    json: options.Json = False,
) -> None:
    """Answer a prompt.

    \b
    Examples:
      unmask generate abc --length 8
      unmask generate abc --decoder 'vote(n=5, inner=low-confidence(temperature=0.8))' --json
      echo abc | unmask generate - --decoder 'ots(beams=4, block=4)' --trace abc.jsonl
    """
    asked = options.read_prompt(prompt, chat)
    made, made_cache = api.decoder.make(decoder), make_cache(cache)
    if trace is not None:
        api.check_writable(trace)
    loaded = api.load(model, device, dtype, compiled=compiled)
    with watching("decoding") as watch:
        output = api.generate(
            loaded,
            asked,
            decoder=made,
            length=length,
            seed=seed,
            guidance=guidance,
            suppress=suppress,
            early_end=early_end,
            cache=made_cache,
            stop=stop or (),
            trace=trace or False,
            watch=watch,
        )
    show(output, trace, json)


def show(output: Output, trace: Path | None, json: bool) -> None:
    """The text alone, or everything as one JSON object."""
    print(jsons.dumps(output.json() | {"trace": trace and str(trace)}, ensure_ascii=False) if json else output.text)
