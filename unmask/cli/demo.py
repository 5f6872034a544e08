"""`unmask demo`: a handful of problems, low-confidence beside Order-Token Search."""

import json as jsons
from typing import Any

from unmask import api
from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.progress import watching
from unmask.runs.output import Output

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
    found = [_row(problem, answers[spec][i]) for i, problem in enumerate(PROBLEMS) for spec in DECODERS]
    print(jsons.dumps(found, ensure_ascii=False) if json else _table(found))


def _row(problem: str, output: Output) -> dict[str, Any]:
    cost = output.cost
    name = output.decoder.partition("(")[0]
    return {"problem": problem, "decoder": name, "text": output.text, "rows": cost.rows, "computed": cost.distinct}


def _table(found: list[dict[str, Any]]) -> str:
    """Columns as wide as what is in them."""
    lines = [list(found[0]), *([str(value) for value in one.values()] for one in found)]
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, wide)).rstrip() for line in lines)
