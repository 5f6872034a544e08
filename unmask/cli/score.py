"""`unmask score`: the log-likelihood of texts."""

import json as jsons
from typing import Annotated

import typer

from unmask import api
from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.progress import counting
from unmask.runs.scoring import SCORER, Scored, make_scorer
from unmask.runs.settings import Placement


@app.command()
@options.expand("precision", "memory")
def score(
    prompt: options.PromptText,
    texts: Annotated[list[str], typer.Argument(metavar="TEXT…", help="Each is scored after the prompt.")],
    model: options.ModelName = options.MODEL,
    scorer: options.ScorerName = SCORER,
    length: Annotated[
        int | None, typer.Option(metavar="N", help="Fill each text up with end-of-text to so many tokens.")
    ] = None,
    block: options.ScoreBlock = None,
    seed: Annotated[int, typer.Option("--seed", "-s", metavar="N", help="Of the random masks of elbo.")] = 0,
    chat: options.Chat = False,
    *,
    placement: options.PlacementFields,
    json: options.Json = False,
) -> None:
    """Score texts after a prompt: the log-likelihood of each.

    \b
    Examples:
      unmask score abc de fg -m toy-chain
      unmask score --chat 'Numbers: [87, 28, 35]\\nTarget: 94' '<answer>87-28+35</answer>' --length 64
      unmask score abc de fg -m toy-chain --scorer 'elbo(n=64)' --json
    """
    message = options.read_prompt(prompt, chat) if prompt else ""  # a text may stand alone
    chosen = make_scorer(scorer)
    where = Placement(**placement)
    with counting("texts") as progress:
        scores = api.score(
            where.load(model),
            message,
            texts,
            scorer=chosen,
            length=length,
            block=block,
            seed=seed,
            batch=where.batch or api.BATCH,
            progress=progress,
        )
    best = max(range(len(scores)), key=lambda number: scores[number].logp)
    if json:
        print(jsons.dumps({"best": best, "scores": [each.json() for each in scores]}, ensure_ascii=False))
    else:
        print("\n".join(line(each) for each in scores))


def line(scored: Scored) -> str:
    """The figures, then the text as JSON, which keeps it on one line."""
    error = "" if scored.error is None else f" ± {scored.error:.4f}"
    text = jsons.dumps(scored.text, ensure_ascii=False)
    return f"{scored.logp:.4f}{error}  {scored.per_token:.4f} per token  {scored.forward_passes} rows  {text}"
