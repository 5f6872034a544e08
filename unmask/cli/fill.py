"""`unmask fill`: fill the gaps of a text."""

from typing import Any

from unmask import api
from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.generate import show


@app.command()
@options.expand("early_end", *options.MANY)
def fill(
    prompt: options.PromptText,
    model: options.ModelName = options.MODEL,
    *,
    decoding: dict[str, Any],
    chat: options.Chat = False,
    trace: options.TraceFile = None,
    placement: dict[str, Any],
    json: options.Json = False,
) -> None:
    """Fill the gaps of a text, each written `<mask:n>` for n tokens.

    \b
    Examples:
      unmask fill 'ab<mask:3>cd<mask:2>'
      unmask fill 'ab<mask:3>' --length 4 --decoder 'low-confidence(block=1)' --json
    """
    show(api.fill, options.read_prompt(prompt, chat), model, decoding, placement, trace, json)
