"""`unmask fill`: a text with gaps, filled."""

from unmask import api
from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.generate import show
from unmask.cli.progress import watching
from unmask.models.cache import make_cache


@app.command()
def fill(
    prompt: options.PromptText,
    model: options.ModelName = options.MODEL,
    decoder: options.DecoderSpec = api.DECODER,
    length: options.Length = 0,
    seed: options.Seed = 0,
    guidance: options.Guidance = 0.0,
    suppress: options.Suppress = False,
    cache: options.Cache = "none",
    stop: options.Stop = None,
    chat: options.Chat = False,
    trace: options.TraceFile = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    compiled: options.Compile = False,
    json: options.Json = False,
) -> None:
    """Fill the gaps of a text, each written `<mask:n>` for n tokens.

    \b
    Examples:
      unmask fill 'ab<mask:3>cd<mask:2>'
      unmask fill 'ab<mask:3>' --length 4 --decoder 'low-confidence(block=1)' --json
    """
    asked = options.read_prompt(prompt, chat)
    made, made_cache = api.decoder.make(decoder), make_cache(cache)
    if trace is not None:
        api.check_writable(trace)
    loaded = api.load(model, device, dtype, compiled=compiled)
    with watching("filling") as watch:
        output = api.fill(
            loaded,
            asked,
            decoder=made,
            length=length or 0,
            seed=seed,
            guidance=guidance,
            suppress=suppress,
            cache=made_cache,
            stop=stop or (),
            trace=trace or False,
            watch=watch,
        )
    show(output, trace, json)
