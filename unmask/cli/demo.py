"""`unmask demo`: a handful of problems, low-confidence beside Order-Token Search."""

import json as jsons
from typing import Any

from unmask import api
from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.progress import watching

PROBLEMS = ("abc", "bead", "gab", "fade")  # the toy chain's alphabet ends at g
DECODERS = ("low-confidence", "order-token-search(beams=4)")


@app.command()
def demo(
    model: options.ModelName = options.MODEL,
    length: options.Length = 32,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """A few problems answered by low-confidence remasking and by Order-Token Search, with what each cost.

    \b
    Examples:
      unmask demo
      unmask demo --seed 1 --json
    """
    loaded = api.load(model)
    with watching("decoding") as watch:
        answers = {
            spec: api.generate(loaded, list(PROBLEMS), decoder=spec, length=length, seed=seed, watch=watch)
            for spec in DECODERS
        }
    found = [
        {"problem": problem, "decoder": spec, "text": answers[spec][i].text, "rows": answers[spec][i].cost.rows}
        for i, problem in enumerate(PROBLEMS)
        for spec in DECODERS
    ]
    print(jsons.dumps(found, ensure_ascii=False) if json else _table(found))


def _table(found: list[dict[str, Any]]) -> str:
    wide = {key: max(len(str(one[key])) for one in [*found, {key: key}]) for key in ("problem", "decoder", "text")}
    head = {"problem": "problem", "decoder": "decoder", "text": "text", "rows": "rows"}
    return "\n".join(
        f"{one['problem']:<{wide['problem']}}  {one['decoder']:<{wide['decoder']}}  "
        f"{one['text']:<{wide['text']}}  {one['rows']}"
        for one in [head, *found]
    )
