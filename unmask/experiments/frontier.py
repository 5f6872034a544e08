"""How many right answers does each decoder give for its forward passes, and which parts of our search matter?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

from unmask.core import decoder
from unmask.experiments.experiment import Claim, Experiment, Findings, above, chance, judge, points
from unmask.experiments.methods import Method, Part, selected
from unmask.experiments.results import Results
from unmask.experiments.run import Runner, describe_machine, seconds_of
from unmask.experiments.setup import BENCHMARKS, Setup
from unmask.experiments.tables import accuracies, average_plot
from unmask.report.frontier import draw_frontier
from unmask.report.plots import FORWARD_PASSES
from unmask.report.statistics import holm
from unmask.report.tables import MISSING, Table
from unmask.runs.generation import Generation
from unmask.runs.settings import Decoding
from unmask.runs.text import read_prompt
from unmask.tasks import task

LENGTH = 256  # for models without an answer length of their own
# budgets of the search, as shares of what the paper's search takes
SHARES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 0.8, 1.0, 1.6, 3.2)
MILLISECONDS = "milliseconds per problem"
TIMED, TIMES = 32, 2  # problems that are timed, unless a batch is chosen, and how often: the shortest time counts
SEARCH = "search-100"
PAPER = "ots"
PATH = "adaptive(sure=0.98, temperature=1.6, block={block})"
# by name, the label and the spec of a search in which one part is removed or replaced
ABLATION = {
    "no-deviations": ("the first path alone", "adaptive(sure=0.99, block={block})"),
    "score-path": ("log p at writing instead of re-prediction", "search(likelihood=path)"),
    "score-block": ("the paper's block score", "search(likelihood=block)"),
    "score-two": ("two combs instead of two and three", "search(likelihood=interleaved(combs=2))"),
    "random-masks": ("random masks instead of combs", "search(likelihood=random-masks(ratio=0.5, n=5))"),
    "short-blocks": ("half as long blocks", "search(block={half})"),
    "careless": ("sure=0.9", "search(sure=0.9)"),
    "all-choices": ("plausible=0.01", "search(plausible=0.01)"),
    "few-choices": ("plausible=0.3", "search(plausible=0.3)"),
    "never-certain": ("sure=1: one position per step, no text certain", "search(sure=1)"),
}


def methods(setup: Setup, length: int) -> list[Method]:
    """Return the methods whose answers do not depend on the seed."""
    block, most = min(64, length), decoder.make("ots(beams=4)").max_forward_passes(length)
    shares = {round(100 * share): max(1, round(share * most)) for share in SHARES}
    return [
        Method("low-confidence", "low-confidence", "low-confidence"),
        Method("low-confidence-half", "half the steps", f"low-confidence(steps={max(1, length // 4)})"),
        Method("margin", "margin", "margin"),
        Method("entropy", "entropy", "entropy"),
        Method("ar", "left to right", "left-to-right(block=1)"),
        Method("threshold", "threshold", "threshold(sure=0.9)"),
        Method("adaptive", "adaptive", "adaptive(sure=0.98)"),
        Method("adaptive-995", "adaptive, long blocks", f"adaptive(sure=0.995, block={block})"),
        Method("repair", "repair of that path", f"repair(inner=adaptive(sure=0.995, block={block}))"),
        Method("order-search", "order search", "order-search"),
        Method("token-search", "token search", "token-search"),
        *(
            Method(f"search-{share}", f"search, {budget} forward passes", f"search(budget={budget})")
            for share, budget in shares.items()
        ),
        *(
            Method(name, label, spec.format(block=block, half=max(1, block // 2)))
            for name, (label, spec) in ABLATION.items()
        ),
    ]


def drawn(setup: Setup, length: int) -> list[Method]:
    """Return the methods whose answers depend on the seed."""
    path, combs = PATH.format(block=min(64, length)), "likelihood=interleaved(combs=2)"
    search = f"temperature={setup.temperature}"
    votes = f"low-confidence(temperature={setup.vote_temperature})"
    return [
        Method("random", "random", "random"),
        Method("vote", "vote of 5", f"vote(n=5, inner={votes})"),
        Method(PAPER, "OTS, 4 beams", f"ots(beams=4, {search})"),
        Method("ots-combs", "OTS, interleaved", f"ots(beams=4, {search}, {combs})"),
        Method("best-of-4", "best of 4 adaptive", f"best-of(n=4, inner={path}, {combs})"),
        Method("best-of-4-repair", "best of 4, repaired", f"best-of(n=4, inner=repair(inner={path}))"),
        Method("best-of-8", "best of 8 adaptive", f"best-of(n=8, inner={path}, {combs})"),
    ]


def parts(setup: Setup) -> list[Part]:
    parts = []
    for benchmark in setup.chosen_for_many(*BENCHMARKS):
        length = setup.at(benchmark, LENGTH)
        groups = {"": (methods(setup, length), (0,)), "drawn": (drawn(setup, length), setup.seeds)}
        every = [method for members, _ in groups.values() for method in members]
        wanted = selected(setup, every)
        for kind, (members, seeds) in groups.items():
            if chosen := [method for method in members if method in wanted]:
                parts.append(Part.of(setup, benchmark, kind, chosen, [length], limit=setup.limit, seeds=seeds))
    return parts


def measure(runner: Runner, setup: Setup) -> dict[str, Any] | None:
    """Return the seconds per problem of every decoder on every benchmark, for a batch of problems decoded together."""
    count = runner.placement.batch or TIMED
    if setup.limit is not None and setup.limit < count:
        return None  # not a batch
    model = runner.placement.load(setup.model)
    seconds: dict[str, dict[str, float]] = {}
    for part in parts(setup):
        benchmark = task.make(part.task, **runner.allowed(part.task))
        problems = islice(benchmark.problems(), count)
        prompts = [read_prompt(model, benchmark.messages(problem)) for problem in problems]
        for method in (each for each in part.methods if each.name not in ABLATION):
            generation = Generation(model, Decoding(decoder.make(method.spec), part.lengths[0]), key=benchmark.key)
            spent = min(seconds_of(partial(generation.outputs, prompts)) for _ in range(TIMES))
            seconds.setdefault(method.name, {})[part.benchmark] = round(spent / len(prompts), 6)
    return {"seconds": seconds, "problems": count, **describe_machine(model, runner.placement)}


def findings(results: Results) -> Findings:
    names = [method.name for method in results.methods]
    decoders = [name for name in names if name not in ABLATION]
    rivals = [name for name in decoders if not name.startswith("search-")]
    tables = [
        _table(results, "every decoder: accuracy, %, and forward passes per problem", decoders),
        _paired(results, rivals),
        _budgets(results, [name for name in decoders if name not in rivals], rivals),
        _table(results, "the search, and with one part removed or replaced", [SEARCH, *ABLATION]),
    ]
    costs = [("frontier", FORWARD_PASSES, {name: results.mean_cost(name) for name in decoders})]
    if results.measured:
        costs.append(("frontier-seconds", _axis(results), _milliseconds(results)))
    plots = [average_plot(results, name, axis, _lines(results, cost)) for name, axis, cost in costs]
    pictures = {plot.name: partial(draw_frontier, plot) for plot in plots}
    return Findings(tables, _claims(results), pictures=pictures)


def _milliseconds(results: Results) -> dict[str, float]:
    return {name: 1000 * sum(each.values()) / len(each) for name, each in results.measured["seconds"].items()}


def _axis(results: Results) -> str:
    measured = results.measured
    return f"{MILLISECONDS}, {measured['problems']} together on {measured['machine']['name']}"


def _table(results: Results, title: str, methods: list[str]) -> Table:
    body = []
    for method in (each for each in methods if results.average(each).n):
        costs = (results.mean_cost(method), results.mean_cost(method, "computed"), _highest(results, method))
        body.append((results.label(method), *accuracies(results, method), *(f"{cost:.0f}" for cost in costs)))
    head = ("", *map(results.shown, results.benchmarks), "average", "forward passes", "computed", "highest")
    notes = [
        "Forward passes are means per problem; identical ones of a problem are computed once. The last column is the "
        "mean number of forward passes on the task that takes the most."
    ]
    return Table.of("accuracy", title, head, body, notes, rank=False)


def _highest(results: Results, method: str) -> float:
    """Return the mean number of forward passes on the task that takes the most."""
    by_task = (results.by_length(benchmark, method).values() for benchmark in results.benchmarks)
    return max((result.cost["forward_passes"] for each in by_task for result in each), default=0.0)


def _paired(results: Results, rivals: list[str]) -> Table:
    """Compare the search with every other decoder, on the mean over tasks."""
    differences = {name: results.difference(SEARCH, name) for name in rivals}
    known = {name: each for name, each in differences.items() if each}
    corrected = dict(zip(known, holm([each.p for each in known.values()]), strict=True))
    body = []
    for name in rivals:
        each = known.get(name)
        cells = (points(each), chance(corrected[name]), str(each.n)) if each else (MISSING, MISSING, MISSING)
        body.append((results.label(name), f"{results.mean_cost(name):.0f}", *cells))
    cost = f"{results.mean_cost(SEARCH):.0f} on average"
    title = f"{results.label(SEARCH)} ({cost}) minus each other decoder"
    notes = [
        f"Paired by problem, the mean over tasks ± its standard error; p corrected for {len(known)} comparisons (Holm)."
    ]
    return Table.of("paired", title, ("against", "forward passes", "points", "p", "n"), body, notes, rank=False)


def _budgets(results: Results, budgets: list[str], rivals: list[str]) -> Table:
    """Compare each budget of the search with the best other decoder that stays within it on every task."""
    most = {name: _highest(results, name) for name in rivals}
    body = []
    for name in budgets:
        within = [rival for rival in rivals if 0 < most[rival] <= _budget(results, name)]
        best = max(within, key=lambda rival: results.average(rival).value or 0.0, default=None)
        difference = results.difference(name, best) if best else None
        beside = (results.label(best), results.average(best)) if best else (MISSING, MISSING)
        apart = (points(difference), chance(difference.p)) if difference else (MISSING, MISSING)
        body.append((results.label(name), results.average(name), *beside, *apart))
    title = "each budget of the search, and the best other decoder that stays within it on every task"
    head = ("", "average", "best other", "average", "points", "p")
    notes = ["A budget bounds every problem; of the others, the mean over the problems of each task is within it."]
    return Table.of("paired", title, head, body, notes, rank=False)


def _budget(results: Results, name: str) -> int:
    method = next(method for method in results.methods if method.name == name)
    return decoder.make(method.spec).max_forward_passes(results.parts[0].lengths[0])


def _claims(results: Results) -> list[Claim]:
    claims = [
        above(
            results,
            "An adaptive path is above low-confidence, at a lower cost",
            "adaptive-995",
            "low-confidence",
        ),
        above(results, "The search is above OTS with 4 beams at equal cost", SEARCH, PAPER),
        above(results, "The search with 0.3 of its cost is above OTS with 4 beams", "search-30", PAPER),
        above(results, "OTS with the interleaved score is above OTS", "ots-combs", PAPER),
    ]
    for benchmark in results.benchmarks:
        text = f"The search is above OTS with 4 beams on {results.shown(benchmark)}"
        claims.append(judge(text, "", results.difference(SEARCH, PAPER, [benchmark])))
    return claims


def _lines(results: Results, cost: Mapping[str, float]) -> Iterator[tuple[str, str, float]]:
    """Yield (label, method, cost); the budgets of the search share a label, which makes them one line."""
    for method in (each for each in results.methods if each.name in cost):
        yield "search" if method.name.startswith("search-") else method.label, method.name, cost[method.name]


EXPERIMENT = Experiment("frontier", "ours", __doc__, parts, findings, measure)
