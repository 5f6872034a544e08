"""How many more right answers does a check of what the question shows give, and at which cost?

The visible check of a task sees the prompt and an answer, never the gold answer: examples of a program, the numbers and
the target of Countdown, the givens of a Sudoku, the arithmetic of worked lines.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from unmask.core import decoder
from unmask.experiments.experiment import Experiment, Findings, above
from unmask.experiments.results import Results
from unmask.experiments.run import Runner, describe_machine
from unmask.experiments.setup import BENCHMARKS, Method, Part, Setup, draws, selected
from unmask.experiments.tables import average_plot, chance, corrected, cost_table, points
from unmask.report.gather import grouped
from unmask.report.plots import FORWARD_PASSES, draw_frontier
from unmask.report.tables import MISSING, Table
from unmask.runs.checking import VISIBLE

LENGTH = 256  # for models without an answer length of their own
SHARES = (0.1, 0.2, 0.4, 2.0)  # more budgets of the checked search, as shares of what the paper's search takes
SAMPLES = "n={n}, inner=adaptive(sure=0.98, temperature=1.6, block={block})"
PLAIN = {  # by name, the label and the spec of a method; all of them are run with and without the check
    "path": ("one adaptive path", "adaptive(sure=0.99, block={block})"),
    "repair": ("repair", "repair(inner=adaptive(sure=0.99, block={block}))"),
    "search": ("search", "search"),
    "ots": ("OTS, 4 beams", "ots(beams=4, temperature={temperature})"),
    "best-of": ("best of {n}", f"best-of({SAMPLES})"),
    "vote": ("vote of {n}", f"vote({SAMPLES})"),
}
CHECKED = "-checked"


def parts(setup: Setup) -> list[Part]:
    """Return parts with the check and without, and of each kind one for what draws, which has several seeds."""
    parts = []
    for benchmark in setup.chosen_for_many(*BENCHMARKS):
        length = setup.at(benchmark, LENGTH)
        for checked, every in ((False, _methods(setup, length)), (True, _checked(setup, length))):
            kinds = grouped(every, lambda method: "drawn" if draws(method) else "fixed")
            for kind, members in kinds.items():
                seeds = setup.seeds if kind == "drawn" else (0,)
                name, check = (f"{kind}{CHECKED}", VISIBLE) if checked else (kind, "")
                parts.append(
                    Part.of(setup, benchmark, name, members, [length], limit=setup.limit, seeds=seeds, check=check)
                )
    return parts


def _methods(setup: Setup, length: int) -> list[Method]:
    sizes = {"block": min(64, length), "temperature": setup.temperature, "n": min(16, setup.samples)}
    every = (Method(name, *(text.format(**sizes) for text in texts)) for name, texts in PLAIN.items())
    return selected(setup, every)


def _checked(setup: Setup, length: int) -> list[Method]:
    most = decoder.make("ots(beams=4)").max_forward_passes(length)
    budgets = {round(100 * share): max(1, round(share * most)) for share in SHARES}
    searches = [
        Method(f"search-{share}{CHECKED}", f"search, {budget} forward passes, checked", f"search(budget={budget})")
        for share, budget in budgets.items()
    ]
    every = _methods(setup, length)
    named = [Method(each.name + CHECKED, f"{each.label}, checked", each.spec) for each in every]
    return named + (searches if any(each.name == "search" for each in every) else [])


def measure(runner: Runner, setup: Setup) -> dict[str, Any]:
    """Return, by benchmark, the share of problems for which the search without a check writes a right text at all."""
    model = runner.placement.load(setup.model)
    found = {}
    for part in parts(setup):
        method = next((each for each in part.methods if each.name == "search"), None)
        if method is not None:
            found[part.benchmark] = _written(runner, model, part, method)
    return {"oracle": found, **describe_machine(model, runner.placement)}


def _written(runner: Runner, model: Any, part: Part, method: Method) -> dict[str, float]:
    """Grade every text that a search writes."""
    source, right, count = runner.task_of(part), 0, part.limit or 1000
    generation = runner.generation(model, part, method)
    problems = [problem for problem, _ in zip(source.problems(), range(count), strict=False)]
    prompts = runner.encoded_prompts(model, part, count)
    size = runner.placement.batch or 250
    for start in range(0, len(problems), size):
        texts = _texts(generation, prompts[start : start + size])
        for problem, some in zip(problems[start : start + size], texts, strict=True):
            right += any(source.grade(problem, text, "ours").right for text in some)
    return {"right": right / len(problems), "n": len(problems)}


def _texts(generation: Any, prompts: list[Any]) -> list[set[str]]:
    """Return the finished texts of every prompt."""
    texts: list[set[str]] = [set() for _ in prompts]
    for frame in generation.session(prompts):
        done = (~frame.canvas.masked.any(1)).nonzero()[:, 0]
        canvas = frame.canvas.rows(done).cpu()
        for problem, pad, ids in zip(
            *(each.tolist() for each in (canvas.problem, canvas.pad, canvas.tokens)), strict=True
        ):
            texts[problem].add(generation.text(prompts[problem], ids[pad:]))
    return texts


def findings(results: Results) -> Findings:
    columns = {
        "forward passes": lambda method: f"{results.mean_cost(method):.0f}",
        "computed": lambda method: f"{results.mean_cost(method, 'computed'):.0f}",
        "checks": lambda method: f"{results.mean_cost(method, 'checks'):.1f}",
    }
    note = "The checked decoders were told by a check of the prompt's own content whether a text can be right, the "
    note += "others were not. For Countdown and Sudoku that check is the grade itself; for programs it is the examples "
    note += "in the prompt, for word problems and exercises the arithmetic of the worked lines."
    tables = [cost_table(results, "accuracy, %, and cost per problem", columns, notes=[note]), _paired(results)]
    if results.measured:
        tables.append(_gap(results))
    plot = average_plot(results, "check", FORWARD_PASSES, _lines(results))
    names = [name for name in PLAIN if name != "path"]  # one text leaves nothing to choose
    claims = [above(results, f"The check helps {results.label(name)}", name + CHECKED, name) for name in names]
    return Findings(tables, claims, pictures={plot.name: partial(draw_frontier, plot)})


def _paired(results: Results) -> Table:
    """Compare every decoder with the check and without."""
    pairs = {
        (name, benchmark): results.difference(name + CHECKED, name, [benchmark])
        for name in PLAIN
        for benchmark in results.benchmarks
    }
    chances = corrected({f"{name} {benchmark}": each for (name, benchmark), each in pairs.items()})
    body = []
    for name in PLAIN:
        cells = [(pairs[name, benchmark], chances.get(f"{name} {benchmark}")) for benchmark in results.benchmarks]
        shown = (MISSING if each is None or p is None else f"{points(each)}, {chance(p)}" for each, p in cells)
        body.append((results.label(name), *shown))
    note = (
        "Paired by problem, the difference ± its standard error; p corrected for all comparisons of the table (Holm)."
    )
    head = ("with the check minus without", *map(results.shown, results.benchmarks))
    return Table.of("paired", "what the check adds, points", head, body, [note], rank=False)


def _gap(results: Results) -> Table:
    """Return how much of the distance between the search and the best of its own texts the check closes."""
    body = []
    for benchmark, oracle in results.measured["oracle"].items():
        plain, checked = (results.accuracy(benchmark, name).value for name in ("search", f"search{CHECKED}"))
        if plain is None or checked is None:
            continue
        gap = oracle["right"] - plain
        share = f"{100 * (checked - plain) / gap:.0f} %" if gap > 0 else MISSING
        figures = (f"{100 * value:.1f}" for value in (plain, checked, oracle["right"]))
        body.append((results.shown(benchmark), *figures, share, str(oracle["n"])))
    head = ("", "search", "search, checked", "any text of the unchecked search is right", "of the gap", "n")
    note = "More than 100 %: with a check the search goes on, so it writes right texts that it did not write before."
    return Table.of("accuracy", "the search and the best of its own texts, accuracy, %", head, body, [note], rank=False)


def _lines(results: Results) -> Iterator[tuple[str, str, float]]:
    """Yield (label, method, cost); the budgets of the checked search share a label, which makes them one line."""
    for method in results.methods:
        budget = method.name.startswith("search") and method.name.endswith(CHECKED)
        yield "search, checked" if budget else method.label, method.name, results.mean_cost(method.name)


EXPERIMENT = Experiment("check", "ours", __doc__, parts, findings, measure)
