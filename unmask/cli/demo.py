"""`unmask demo`: three decoders on Countdown problems the embedded model never saw."""

import tempfile
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from unmask import api
from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.edge import print_json
from unmask.cli.progress import watching
from unmask.core import decoder
from unmask.report.figures import keep
from unmask.runs.bounds import MOST_ROWS, check_rows
from unmask.spelling import spell
from unmask.tasks import Problem
from unmask.tasks.countdown import Countdown
from unmask.view.trace_page import Shown, trace_page

PATH, SEARCH = "low-confidence", "search"
DECODERS = {
    "low-confidence": PATH,
    "Order-Token Search": "order-token-search(beams=4, temperature=1.0)",
    "search": SEARCH,
}
TASK = Countdown()


@app.command()
def demo(
    model: options.ModelName = options.MODEL,
    length: options.Length = 64,
    problems: options.Problems = 24,
    seed: options.Seed = 0,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page of one problem; by default in a temporary folder.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Compare low-confidence remasking, the paper's search and ours on Countdown problems: answers and cost.

    At the end a page shows how one problem was solved, one that the search solves and a single path does not.

    \b
    Examples:
      unmask demo
      unmask demo --problems 3 --json
    """
    if page is not None:
        api.check_writable(page)
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
        page = page or Path(tempfile.mkdtemp(prefix="unmask-")) / "demo.html"
    if page is not None:
        problem = _telling(some, results)
        traces = [traced(loaded, problem, spec, length, seed) for spec in (SEARCH, PATH)]
        keep(trace_page(traces).encode(), page)
        if not json:
            print(f"One of them step by step, in a page to open: {page}")


def _telling(problems: list[Problem], results: list[dict[str, Any]]) -> Problem:
    """The first problem that the search gets right and a single path wrong; where there is none, the first."""
    right = {(result["decoder"], result["problem"]): result["right"] for result in results}
    telling = (each for each in problems if right[SEARCH, each.id] and not right[PATH, each.id])
    return next(telling, problems[0])


def traced(model: api.Model, problem: Problem, spec: str, length: int | None, seed: int) -> Shown:
    output = api.generate(
        model, TASK.messages(problem), decoder=spec, length=length, seed=seed, key=TASK.key, trace=True
    )
    assert output.trace is not None
    grade = TASK.grade(problem, output.text)
    return Shown(output.trace, grade.right, grade.answer)


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
    return spell(f"{'✓' if result['right'] else '✗'} {result['answer'] or '(no answer)'}")
