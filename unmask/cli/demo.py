"""`unmask demo`: three decoders on Countdown problems the embedded model never saw."""

import tempfile
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from unmask import api
from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.demo_screen import show
from unmask.cli.edge import print_json
from unmask.cli.progress import status_line, step_of
from unmask.core import Frame, decoder
from unmask.report.figures import keep
from unmask.runs.bounds import MOST_ROWS, check_rows
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
    results = _decode(loaded, some, length, seed)
    if json:
        print_json(results)
    else:
        show(some, results, DECODERS, Console(highlight=False))
        page = page or Path(tempfile.mkdtemp(prefix="unmask-")) / "demo.html"
    if page is not None:
        problem = _telling(some, results)
        with status_line("making a page of one problem"):
            traces = [traced(loaded, problem, spec, length, seed) for spec in (SEARCH, PATH)]
        keep(trace_page(traces).encode(), page)
        if not json:
            print(f"One of them step by step, in a page to open: {page}")


def _decode(model: api.Model, problems: list[Problem], length: int | None, seed: int) -> list[dict[str, Any]]:
    prompts = [TASK.messages(problem) for problem in problems]
    results: list[dict[str, Any]] = []
    with status_line("starting") as tell:
        for place, (name, spec) in enumerate(DECODERS.items(), 1):
            label = f"{name} (decoder {place} of {len(DECODERS)})"

            def watch(numbers: list[int], frame: Frame, label: str = label) -> None:
                tell(f"{label}: {_places(numbers)} of {len(problems)}, {step_of(frame)}")

            outputs = api.generate(model, prompts, decoder=spec, length=length, seed=seed, key=TASK.key, watch=watch)
            results += [_result(problem, output, spec) for problem, output in zip(problems, outputs, strict=True)]
    return results


def _places(numbers: list[int]) -> str:
    """Of the problems that take a step together, as people count."""
    first, last = min(numbers) + 1, max(numbers) + 1
    return f"problem {first}" if first == last else f"problems {first} to {last}"


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
