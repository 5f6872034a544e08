"""`unmask demo`: three decoders on Countdown problems the embedded model never saw."""

from itertools import islice
from typing import Any

from rich.console import Console
from rich.table import Table

from unmask import api
from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.edge import print_json
from unmask.cli.progress import watching
from unmask.core import decoder
from unmask.runs.bounds import MOST_ROWS, check_rows
from unmask.tasks import Problem
from unmask.tasks.countdown import Countdown

DECODERS = {
    "low-confidence": "low-confidence",
    "Order-Token Search": "order-token-search(beams=4, temperature=1.0)",
    "search": "search",
}
TASK = Countdown()


@app.command()
def demo(
    model: options.ModelName = options.MODEL,
    length: options.Length = 64,
    problems: options.Problems = 24,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Compare low-confidence remasking, the paper's search and ours on Countdown problems: answers and cost.

    \b
    Examples:
      unmask demo
      unmask demo --problems 3 --json
    """
    for spec in DECODERS.values():
        check_rows(decoder.make(spec), max(length or 1, 1), MOST_ROWS, times=problems, advice="choose fewer problems")
    loaded = api.load(model)
    some = list(islice(TASK.problems(), problems))
    results: list[dict[str, Any]] = []
    with watching("decoding") as watch:
        for spec in DECODERS.values():
            prompts = [TASK.messages(problem) for problem in some]
            outputs = api.generate(loaded, prompts, decoder=spec, length=length, seed=seed, key=TASK.key, watch=watch)
            results += [_result(problem, output, spec) for problem, output in zip(some, outputs, strict=True)]
    if json:
        print_json(results)
    else:
        _show(some, results)


def _result(problem: Problem, output: api.Output, spec: str) -> dict[str, Any]:
    grade = TASK.grade(problem, output.text)
    return {
        "problem": problem.id,
        "question": problem.question,
        "decoder": spec,
        "text": output.text,
        "answer": grade.answer,
        "right": grade.right,
        "rows": output.cost.rows,
        "computed": output.cost.distinct,
    }


def _show(problems: list[Problem], results: list[dict[str, Any]]) -> None:
    table = Table("numbers", "target", *DECODERS, title="Countdown: reach the target with every number used once")
    for problem in problems:
        answers = [_answer(result) for result in results if result["problem"] == problem.id]
        numbers = ", ".join(map(str, problem.data["numbers"]))
        table.add_row(numbers, str(problem.data["target"]), *answers)
    table.add_section()
    for name, key in (("right", "right"), ("rows asked", "rows"), ("rows computed", "computed")):
        totals = [sum(result[key] for result in results if result["decoder"] == spec) for spec in DECODERS.values()]
        table.add_row(name, "", *map(str, totals))
    for column in table.columns:
        column.overflow = "fold"  # a narrow terminal breaks a name, and loses none of it
    Console().print(table)


def _answer(result: dict[str, Any]) -> str:
    return f"{'✓' if result['right'] else '✗'} {result['answer'] or '(no answer)'}"
