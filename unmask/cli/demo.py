"""`unmask demo`: three decoders on Countdown problems that the embedded model was not trained on."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unmask.cli import options
from unmask.cli.boundary import print_json
from unmask.cli.options import option
from unmask.cli.progress import status_line, step_of

if TYPE_CHECKING:
    from unmask import api
    from unmask.core import Frame
    from unmask.report.tables import Table
    from unmask.tasks import Countdown, Problem
    from unmask.view.trace_page import Shown

TITLE = "Countdown: reach the target with every number used once"
ENOUGH = 1000  # problems per task in docs/results.md
PATH, SEARCH = "low-confidence", "search"
OTS = "order-token-search(beams=4, temperature=1.0)"
DECODERS = {"low-confidence": PATH, "Order-Token Search": OTS, "search": SEARCH}
REMARK = "A forward pass takes one text through the network once; identical texts of a problem are computed only once."
COUNTED = ("right", "forward_passes", "computed")
Results = Sequence[Mapping[str, Any]]


def demo(
    model: options.ModelName = options.MODEL,
    length: Annotated[int, option("Masks after the prompt.", "--length", "-l", metavar="N")] = 64,
    problems: Annotated[int, option("Number of problems.", "--problems", "-n", metavar="N", min=1)] = 24,
    seed: options.Seed = 0,
    page: Annotated[Path | None, option("Page of a problem; default: in a temporary folder.", metavar="FILE")] = None,
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
    from unmask.report import formats
    from unmask.report.plots import keep
    from unmask.runs.files import check_writable
    from unmask.runs.settings import MAX_FORWARD_PASSES, check_cost
    from unmask.tasks import Countdown
    from unmask.view.trace_page import trace_page

    if page is not None:
        check_writable(page)
    for spec in map(decoder.make, DECODERS.values()):
        check_cost(spec, max(length, 1), MAX_FORWARD_PASSES, times=problems, advice="choose fewer problems")
    loaded = api.load(model)
    task = Countdown()
    some = list(islice(task.problems(), problems))
    results = _decode(loaded, task, some, length, seed)
    if json:
        print_json(results)
    else:
        formats.terminal([answer_table(some, results)])
        page = page or Path(tempfile.mkdtemp(prefix="unmask-")) / "demo.html"
    if page is not None:
        problem = _example(some, results)
        with status_line("making a page of one problem"):
            traces = [traced(loaded, task, problem, spec, length, seed) for spec in (SEARCH, PATH)]
        keep(trace_page(traces).encode(), page)
        if not json:
            print(f"A page that shows one of them step by step: {page}")


def _decode(model: api.Model, task: Countdown, problems: list[Problem], length: int, seed: int) -> list[dict[str, Any]]:
    from unmask import api

    results = []
    prompts = [task.messages(problem) for problem in problems]
    with status_line("starting") as update:
        for place, (name, spec) in enumerate(DECODERS.items(), 1):
            label = f"{name} (decoder {place} of {len(DECODERS)}): problem"

            def watch(numbers: list[int], frame: Frame, label: str = label) -> None:
                update(f"{label} {min(numbers) + 1} to {max(numbers) + 1} of {len(problems)}, {step_of(frame)}")

            outputs = api.generate(model, prompts, decoder=spec, length=length, seed=seed, key=task.key, watch=watch)
            for problem, output in zip(problems, outputs, strict=True):
                grade = task.grade(problem, output.text)
                asked = {"problem": problem.id, "question": problem.question, "decoder": spec, "text": output.text}
                cost = {"forward_passes": output.cost.forward_passes, "computed": output.cost.computed}
                results.append({**asked, "answer": grade.answer, "right": grade.right, **cost})
    return results


def _example(problems: list[Problem], results: list[dict[str, Any]]) -> Problem:
    """Return the first problem that the search gets right and a single path wrong, else the first problem."""
    right = {(result["decoder"], result["problem"]): result["right"] for result in results}
    found = (each for each in problems if right[SEARCH, each.id] and not right[PATH, each.id])
    return next(found, problems[0])


def traced(model: api.Model, task: Countdown, problem: Problem, spec: str, length: int, seed: int) -> Shown:
    from unmask import api
    from unmask.view.trace_page import Shown

    how: dict[str, Any] = {"decoder": spec, "length": length, "seed": seed, "key": task.key}
    output = api.generate(model, task.messages(problem), trace=True, **how)
    assert output.trace is not None
    grade = task.grade(problem, output.text)
    return Shown(output.trace, grade.right, grade.answer)


def answer_table(problems: Sequence[Problem], results: Results) -> Table:
    """Return the answers of each decoder and their cost."""
    from unmask.report.tables import Table

    by_decoder = {name: [each for each in results if each["decoder"] == spec] for name, spec in DECODERS.items()}
    rows = []
    for place, problem in enumerate(problems):
        answers = [results[place] for results in by_decoder.values()]
        shown = [f"{'✓' if each['right'] else '✗'} {each['answer'] or '(no answer)'}" for each in answers]
        rows.append([f"{' '.join(map(str, problem.data['numbers']))} → {problem.data['target']}", *shown])
    for key in COUNTED:
        rows.append([key.replace("_", " "), *(str(sum(each[key] for each in some)) for some in by_decoder.values())])
    named = "; ".join(name if name == spec else f"{name} is {spec}" for name, spec in DECODERS.items())
    notes = [f"Decoders: {named}. A setting that is not written is at its default.", _summary(by_decoder), REMARK]
    if len(problems) < ENOUGH:
        few = "1 problem is" if len(problems) == 1 else f"{len(problems)} problems are"
        notes.append(f"{few} too few to compare decoders; docs/results.md uses {ENOUGH:,} per task.")
    return Table.of("timing", TITLE, ("numbers → target", *DECODERS), rows, notes)


def _summary(by_decoder: Mapping[str, Results]) -> str:
    """Return a sentence with the number of problems that each decoder solved, and its cost per problem."""
    sums = {name: [sum(each[key] for each in some) for key in COUNTED] for name, some in by_decoder.items()}
    parts = []
    for name, (right, asked, computed) in sorted(sums.items(), key=lambda item: (-item[1][0], item[1][1])):
        n = len(by_decoder[name])
        of, unit = (f" of {n}", " forward passes per problem") if not parts else ("", "")
        merged = f" ({computed / n:.0f} computed)" if round(computed / n) != round(asked / n) else ""
        parts.append(f"{name} solved {right}{of} with {asked / n:.0f}{unit}{merged}")
    return "; ".join(parts) + "."
