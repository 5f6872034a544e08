"""`unmask lm-eval`: lm-evaluation-harness with a model of this package."""

import json as jsons

import typer

from unmask.cli import options
from unmask.cli.app import app
from unmask.runs.scoring import SCORER

PASSED = {"allow_extra_args": True, "ignore_unknown_options": True}  # what is not ours goes to the harness
OTHERS = ("ls", "validate")  # its commands that need no model


@app.command("lm-eval", context_settings=PASSED)
@options.expand("memory", length=options.Own("the task's, else the model's own"))
def lm_eval(
    context: typer.Context,
    model: options.ModelName = options.MODEL,
    *,
    decoding: options.DecodingFields,
    scorer: options.ScorerName = SCORER,
    block: options.ScoreBlock = None,
    placement: options.PlacementFields,
) -> None:
    """Run lm-evaluation-harness on a model of this package (pip install 'unmask[lm-eval]').

    Options that are not listed here are those of the harness's own `run`, such as --tasks, --limit, --num_fewshot,
    --apply_chat_template, --output_path and --use_cache.

    \b
    Examples:
      unmask lm-eval -m tiny -d 'ots(beams=2)' -l 64 --tasks gsm8k --limit 20 --apply_chat_template
      unmask lm-eval -m tiny --scorer 'elbo(n=128)' --tasks arc_easy --output_path results
      unmask lm-eval ls tasks
    """
    from unmask.integrations import lm_eval as harness  # an extra: only where it is used

    words = list(context.args)
    if words[:1] and words[0] in OTHERS:
        harness.main(words)
        return
    named = {"pretrained": model, **decoding, "scorer": scorer, "block": block, **placement}
    given = {name: value for name, value in named.items() if value is not None}
    run = words[1:] if words[:1] == ["run"] else words
    harness.main(["run", "--model", "unmask", "--model_args", jsons.dumps(given), *run])
