"""What `unmask demo` prints: a table of answers, or a list in a narrow terminal; then what they cost, in a sentence. `unmask demo`: three decoders on Countdown problems the embedded model never saw."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from unmask import api
from unmask.ascii_output import spell
from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.boundary import print_json
from unmask.cli.progress import status_line, step_of
from unmask.core import Frame, decoder
from unmask.report.plots import keep
from unmask.runs.settings import MAX_FORWARD_PASSES, check_cost
from unmask.tasks import Problem
from unmask.tasks.generated.countdown import Countdown
from unmask.view.trace_page import Shown, trace_page

TITLE = "Countdown: reach the target with every number used once"
HEAD = "numbers → target"
GAP = 2  # columns between two columns of the table
ENOUGH = 1000  # problems, as many of each kind as docs/results.md has
Results = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Total:
    """One decoder's results together."""

    name: str
    right: int
    problems: int
    rows: int
    computed: int

    def cost(self, unit: str = "") -> str:
        """Rows per problem: those asked, and those computed where they are fewer."""
        asked, computed = (f"{count / self.problems:.0f}" for count in (self.rows, self.computed))
        return asked + unit + (f" ({computed} computed)" if computed != asked else "")


def show(problems: Sequence[Problem], results: Results, specs: Mapping[str, str], console: Console) -> None:
    """`specs` are the decoders by the names they have here."""
    totals = [_total(name, [each for each in results if each["decoder"] == spec]) for name, spec in specs.items()]
    answers = [_line(problem, results, specs) for problem in problems]
    sums = [
        ["right", *(str(total.right) for total in totals)],
        ["rows asked", *(str(total.rows) for total in totals)],
        ["rows computed", *(str(total.computed) for total in totals)],
    ]
    console.print(Text(TITLE, "bold"))
    draw = _print_table if _fits([*answers, *sums], specs, console.width) else _print_list
    draw(answers, sums, list(specs), console)
    for sentence in (_decoders(specs), verdict(totals), *_remarks(len(problems))):
        console.print(Text(sentence))


def verdict(totals: Sequence[Total]) -> str:
    """Who solved how many, and at which cost."""
    best, *others = sorted(totals, key=lambda total: (-total.right, total.rows))
    first = f"{best.name} solved {best.right} of {best.problems} with {best.cost(' rows per problem')}"
    return "; ".join([first, *(f"{each.name} {each.right} with {each.cost()}" for each in others)]) + "."


def _total(name: str, results: Results) -> Total:
    right, rows, computed = (sum(each[key] for each in results) for key in ("right", "forward_passes", "computed"))
    return Total(name, right, len(results), rows, computed)


def _line(problem: Problem, results: Results, specs: Mapping[str, str]) -> list[str]:
    answers = {each["decoder"]: each for each in results if each["problem"] == problem.id}
    question = spell(f"{' '.join(map(str, problem.data['numbers']))} → {problem.data['target']}")
    return [question, *(_answer(answers[spec]) for spec in specs.values())]


def _answer(result: Mapping[str, Any]) -> str:
    return spell(f"{'✓' if result['right'] else '✗'} {result['answer'] or '(no answer)'}")


def _fits(lines: Sequence[Sequence[str]], names: Mapping[str, str], width: int) -> bool:
    columns = zip([spell(HEAD), *names], *lines, strict=True)
    return sum(max(map(cell_len, column)) + GAP for column in columns) - GAP <= width


def _print_table(
    answers: Sequence[Sequence[str]], sums: Sequence[Sequence[str]], names: Sequence[str], console: Console
) -> None:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for head in (spell(HEAD), *names):
        table.add_column(Text(head), no_wrap=True)
    for place, line in enumerate([*answers, *sums], 1):
        table.add_row(*map(Text, line), end_section=place == len(answers))
    console.print(table)
    console.print()


def _print_list(
    answers: Sequence[Sequence[str]], sums: Sequence[Sequence[str]], names: Sequence[str], console: Console
) -> None:
    """Each problem above its answers, every answer with the name of its decoder."""
    for line in (*answers, *sums):
        console.print(Text(line[0]))
        width = max(map(cell_len, line[1:]))
        for text, name in zip(line[1:], names, strict=True):
            console.print(Text.assemble(f"  {text:<{width}}  ", (name, "dim")))
    console.print()


def _decoders(specs: Mapping[str, str]) -> str:
    named = [name if name == spec else f"{name} is {spec}" for name, spec in specs.items()]
    return f"Decoders: {'; '.join(named)}. A setting that is not written is at its default."


def _remarks(problems: int) -> list[str]:
    words = [
        "A row is one text passed through the network once. Asked: as the paper counts. "
        "Computed: identical rows of a problem only once."
    ]
    if problems < ENOUGH:
        few = "1 problem decides" if problems == 1 else f"{problems} problems decide"
        words.append(f"{few} little: docs/results.md has {ENOUGH:,} of each kind.")
    return words


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
        check_cost(
            decoder.make(spec), max(length or 1, 1), MAX_FORWARD_PASSES, times=problems, advice="choose fewer problems"
        )
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
        "forward_passes": output.cost.forward_passes,
        "computed": output.cost.computed,
    }
