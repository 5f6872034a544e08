"""`unmask demo`: three decoders on Countdown problems that the embedded model was not trained on."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from unmask.cli import options
from unmask.cli.boundary import print_json
from unmask.cli.progress import status_line, step_of
from unmask.environment import as_printed

if TYPE_CHECKING:
    from unmask import api
    from unmask.core import Frame
    from unmask.tasks import Countdown, Problem
    from unmask.view.trace_page import Shown

TITLE = "Countdown: reach the target with every number used once"
HEAD = "numbers → target"
GAP = 2  # spaces between two columns of the table
ENOUGH = 1000  # problems per task in docs/results.md
PATH, SEARCH = "low-confidence", "search"
DECODERS = {
    "low-confidence": PATH,
    "Order-Token Search": "order-token-search(beams=4, temperature=1.0)",
    "search": SEARCH,
}
REMARK = """A forward pass is one text passed through the network once. Computed: identical texts of a problem are
computed only once."""
Results = Sequence[Mapping[str, Any]]
Lines = Sequence[Sequence[str]]


def demo(
    model: options.ModelName = options.MODEL,
    length: Annotated[int, typer.Option("--length", "-l", metavar="N", help="Masks after the prompt.")] = 64,
    problems: Annotated[int, typer.Option("--problems", "-n", metavar="N", min=1, help="Number of problems.")] = 24,
    seed: options.Seed = 0,
    page: Annotated[
        Path | None, options.path_option("--page", help="Page of one problem; default: in a temporary folder.")
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
    from unmask import api
    from unmask.core import decoder
    from unmask.report.plots import keep
    from unmask.runs.files import check_writable
    from unmask.runs.settings import MAX_FORWARD_PASSES, check_cost
    from unmask.view.trace_page import trace_page

    if page is not None:
        check_writable(page)
    for spec in DECODERS.values():
        advice = "choose fewer problems"
        check_cost(decoder.make(spec), max(length, 1), MAX_FORWARD_PASSES, times=problems, advice=advice)
    loaded = api.load(model)
    some = list(islice(_task().problems(), problems))
    results = _decode(loaded, some, length, seed)
    if json:
        print_json(results)
    else:
        show(some, results, DECODERS, Console(highlight=False))
        page = page or Path(tempfile.mkdtemp(prefix="unmask-")) / "demo.html"
    if page is not None:
        problem = _example(some, results)
        with status_line("making a page of one problem"):
            traces = [traced(loaded, problem, spec, length, seed) for spec in (SEARCH, PATH)]
        keep(trace_page(traces).encode(), page)
        if not json:
            print(f"A page that shows one of them step by step: {page}")


def _task() -> Countdown:
    from unmask.tasks import Countdown

    return Countdown()


def _decode(model: api.Model, problems: list[Problem], length: int, seed: int) -> list[dict[str, Any]]:
    from unmask import api

    task = _task()
    prompts = [task.messages(problem) for problem in problems]
    results: list[dict[str, Any]] = []
    with status_line("starting") as update:
        for place, (name, spec) in enumerate(DECODERS.items(), 1):
            label = f"{name} (decoder {place} of {len(DECODERS)})"

            def watch(numbers: list[int], frame: Frame, label: str = label) -> None:
                update(
                    f"{label}: problem {min(numbers) + 1} to {max(numbers) + 1} of {len(problems)}, {step_of(frame)}"
                )

            outputs = api.generate(model, prompts, decoder=spec, length=length, seed=seed, key=task.key, watch=watch)
            results += [_result(problem, output, spec) for problem, output in zip(problems, outputs, strict=True)]
    return results


def _result(problem: Problem, output: api.Output, spec: str) -> dict[str, Any]:
    grade = _task().grade(problem, output.text)
    return {
        "problem": problem.id,
        "question": problem.question,
        "decoder": spec,
        "text": output.text,
        "answer": grade.answer,
        "right": grade.right,
        "forward_passes": output.cost.forward_passes,
        "computed": output.cost.computed,
    }


def _example(problems: list[Problem], results: list[dict[str, Any]]) -> Problem:
    """Return the first problem that the search gets right and a single path wrong, else the first problem."""
    right = {(result["decoder"], result["problem"]): result["right"] for result in results}
    found = (each for each in problems if right[SEARCH, each.id] and not right[PATH, each.id])
    return next(found, problems[0])


def traced(model: api.Model, problem: Problem, spec: str, length: int, seed: int) -> Shown:
    from unmask import api
    from unmask.view.trace_page import Shown

    task = _task()
    output = api.generate(
        model, task.messages(problem), decoder=spec, length=length, seed=seed, key=task.key, trace=True
    )
    assert output.trace is not None
    grade = task.grade(problem, output.text)
    return Shown(output.trace, grade.right, grade.answer)


@dataclass(frozen=True)
class Total:
    """The results of one decoder, summed over problems."""

    name: str
    right: int
    problems: int
    forward_passes: int
    computed: int

    def cost(self, unit: str = "") -> str:
        """Return the forward passes per problem, and those computed if they are fewer."""
        asked, computed = (f"{count / self.problems:.0f}" for count in (self.forward_passes, self.computed))
        return asked + unit + (f" ({computed} computed)" if computed != asked else "")


def show(problems: Sequence[Problem], results: Results, specs: Mapping[str, str], console: Console) -> None:
    """Print a table of answers, or a list in a narrow terminal, then their cost; `specs` maps names to decoders."""
    totals = [_total(name, [each for each in results if each["decoder"] == spec]) for name, spec in specs.items()]
    answers = [_line(problem, results, specs) for problem in problems]
    sums = [
        ["right", *(str(total.right) for total in totals)],
        ["forward passes", *(str(total.forward_passes) for total in totals)],
        ["computed", *(str(total.computed) for total in totals)],
    ]
    named = "; ".join(name if name == spec else f"{name} is {spec}" for name, spec in specs.items())
    console.print(Text(TITLE, "bold"))
    draw = _print_table if _fits([*answers, *sums], specs, console.width) else _print_list
    draw(answers, sums, list(specs), console)
    console.print(Text(f"Decoders: {named}. A setting that is not written is at its default."))
    console.print(Text(verdict(totals)))
    console.print(Text(" ".join(REMARK.split())))
    if len(problems) < ENOUGH:
        few = "1 problem is" if len(problems) == 1 else f"{len(problems)} problems are"
        console.print(Text(f"{few} too few to compare decoders; docs/results.md uses {ENOUGH:,} per task."))


def verdict(totals: Sequence[Total]) -> str:
    """Return a sentence with the number of problems that each decoder solved, and its cost."""
    best, *others = sorted(totals, key=lambda total: (-total.right, total.forward_passes))
    first = f"{best.name} solved {best.right} of {best.problems} with {best.cost(' forward passes per problem')}"
    return "; ".join([first, *(f"{each.name} {each.right} with {each.cost()}" for each in others)]) + "."


def _total(name: str, results: Results) -> Total:
    right, asked, computed = (sum(each[key] for each in results) for key in ("right", "forward_passes", "computed"))
    return Total(name, right, len(results), asked, computed)


def _line(problem: Problem, results: Results, specs: Mapping[str, str]) -> list[str]:
    answers = {each["decoder"]: each for each in results if each["problem"] == problem.id}
    signs = {spec: "✓" if answers[spec]["right"] else "✗" for spec in specs.values()}
    question = f"{' '.join(map(str, problem.data['numbers']))} → {problem.data['target']}"
    line = [question, *(f"{sign} {answers[spec]['answer'] or '(no answer)'}" for spec, sign in signs.items())]
    return list(map(as_printed, line))


def _fits(lines: Lines, names: Mapping[str, str], width: int) -> bool:
    columns = zip([as_printed(HEAD), *names], *lines, strict=True)
    return sum(max(map(cell_len, column)) + GAP for column in columns) - GAP <= width


def _print_table(answers: Lines, sums: Lines, names: Sequence[str], console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for head in (as_printed(HEAD), *names):
        table.add_column(Text(head), no_wrap=True)
    for place, line in enumerate([*answers, *sums], 1):
        table.add_row(*map(Text, line), end_section=place == len(answers))
    console.print(table)
    console.print()


def _print_list(answers: Lines, sums: Lines, names: Sequence[str], console: Console) -> None:
    """Print each problem above its answers, every answer beside the name of its decoder."""
    for line in (*answers, *sums):
        console.print(Text(line[0]))
        width = max(map(cell_len, line[1:]))
        for text, name in zip(line[1:], names, strict=True):
            console.print(Text.assemble(f"  {text:<{width}}  ", (name, "dim")))
    console.print()
