"""How many right answers does each decoder give for its forward passes, and which parts of our search matter?"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from unmask.core import decoder
from unmask.experiments.experiment import Experiment, Findings, above, judge
from unmask.experiments.results import Results
from unmask.experiments.run import Runner, describe_machine, seconds_of
from unmask.experiments.setup import BENCHMARKS, Method, Part, Setup, single_parts
from unmask.experiments.tables import average_plot, chance, corrected, cost_table, points
from unmask.report.plots import FORWARD_PASSES, draw_frontier
from unmask.report.tables import MISSING, Table

LENGTH = 256  # for models without an answer length of their own
# budgets of the search, as shares of what the paper's search takes
SHARES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 0.8, 1.0, 1.6, 3.2)
TIMED, TIMES = 32, 2  # problems that are timed, unless a batch is chosen, and how often: the shortest time counts
SEARCH, PAPER = "search-100", "ots"
NOTE = """Forward passes are means per problem; identical ones of a problem are computed once. The last column is the \
mean number of forward passes on the task that takes the most."""
# by name, the label and the spec of a method: first those whose answers do not depend on the seed
FIXED = {
    "low-confidence": ("low-confidence", "low-confidence"),
    "low-confidence-half": ("half the steps", "low-confidence(steps={quarter})"),
    "margin": ("margin", "margin"),
    "entropy": ("entropy", "entropy"),
    "ar": ("left to right", "left-to-right(block=1)"),
    "threshold": ("threshold", "threshold(sure=0.9)"),
    "adaptive": ("adaptive", "adaptive(sure=0.98)"),
    "adaptive-995": ("adaptive, long blocks", "adaptive(sure=0.995, block={block})"),
    "repair": ("repair of that path", "repair(inner=adaptive(sure=0.995, block={block}))"),
    "order-search": ("order search", "order-search"),
    "token-search": ("token search", "token-search"),
}
ABLATION = {  # a search in which one part is removed or replaced
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
PATH, COMBS = "adaptive(sure=0.98, temperature=1.6, block={block})", "likelihood=interleaved(combs=2)"
DRAWN = {
    "random": ("random", "random"),
    "vote": ("vote of 5", "vote(n=5, inner=low-confidence(temperature={vote}))"),
    PAPER: ("OTS, 4 beams", "ots(beams=4, temperature={search})"),
    "ots-combs": ("OTS, interleaved", f"ots(beams=4, temperature={{search}}, {COMBS})"),
    "best-of-4": ("best of 4 adaptive", f"best-of(n=4, inner={PATH}, {COMBS})"),
    "best-of-4-repair": ("best of 4, repaired", f"best-of(n=4, inner=repair(inner={PATH}))"),
    "best-of-8": ("best of 8 adaptive", f"best-of(n=8, inner={PATH}, {COMBS})"),
}
CLAIMS = {
    "An adaptive path is above low-confidence, at a lower cost": ("adaptive-995", "low-confidence"),
    "The search is above OTS with 4 beams at equal cost": (SEARCH, PAPER),
    "The search with 0.3 of its cost is above OTS with 4 beams": ("search-30", PAPER),
    "OTS with the interleaved score is above OTS": ("ots-combs", PAPER),
}


def parts(setup: Setup) -> list[Part]:
    setup, chosen = replace(setup, search_seeds=setup.seeds), setup.chosen_for_many(*BENCHMARKS)
    return single_parts(setup, chosen, LENGTH, partial(methods, setup), limit=setup.limit)


def methods(setup: Setup, length: int) -> list[Method]:
    block, most = min(64, length), decoder.make("ots(beams=4)").max_forward_passes(length)
    budgets = {round(100 * share): max(1, round(share * most)) for share in SHARES}
    searches = {
        f"search-{share}": (f"search, {budget} forward passes", f"search(budget={budget})")
        for share, budget in budgets.items()
    }
    sizes = {"block": block, "half": max(1, block // 2), "quarter": max(1, length // 4)}
    temperatures = {"search": setup.temperature, "vote": setup.vote_temperature}
    every = (FIXED | searches | ABLATION | DRAWN).items()
    return [Method(name, label, spec.format(**sizes, **temperatures)) for name, (label, spec) in every]


def measure(runner: Runner, setup: Setup) -> dict[str, Any] | None:
    """Return the seconds per problem of every decoder on every benchmark, for a batch of problems decoded together."""
    count = runner.placement.batch or TIMED
    if setup.limit is not None and setup.limit < count:
        return None  # not a batch
    model = runner.placement.load(setup.model)
    seconds: dict[str, dict[str, float]] = {}
    for part in parts(setup):
        prompts = runner.encoded_prompts(model, part, count)
        for method in (each for each in part.methods if each.name not in ABLATION):
            decode = partial(runner.generation(model, part, method).outputs, prompts)
            spent = min(seconds_of(decode) for _ in range(TIMES))
            seconds.setdefault(method.name, {})[part.benchmark] = round(spent / len(prompts), 6)
    return {"seconds": seconds, "problems": count, **describe_machine(model, runner.placement)}


def findings(results: Results) -> Findings:
    decoders = [method.name for method in results.methods if method.name not in ABLATION]
    rivals = [name for name in decoders if not name.startswith("search-")]
    tables = [
        _table(results, "every decoder: accuracy, %, and forward passes per problem", decoders),
        _paired(results, rivals),
        _budgets(results, [name for name in decoders if name not in rivals], rivals),
        _table(results, "the search, and with one part removed or replaced", [SEARCH, *ABLATION]),
    ]
    costs = [("frontier", FORWARD_PASSES, {name: results.mean_cost(name) for name in decoders})]
    if measured := results.measured:
        axis = f"milliseconds per problem, {measured['problems']} together on {measured['machine']['name']}"
        means = {name: 1000 * sum(each.values()) / len(each) for name, each in measured["seconds"].items()}
        costs.append(("frontier-seconds", axis, means))
    plots = [average_plot(results, name, axis, _lines(results, cost)) for name, axis, cost in costs]
    claims = [above(results, text, *pair) for text, pair in CLAIMS.items()]
    for benchmark in results.benchmarks:
        text = f"The search is above OTS with 4 beams on {results.shown(benchmark)}"
        claims.append(judge(text, "", results.difference(SEARCH, PAPER, [benchmark])))
    return Findings(tables, claims, pictures={plot.name: partial(draw_frontier, plot) for plot in plots})


def _table(results: Results, title: str, methods: list[str]) -> Table:
    columns = {
        "forward passes": lambda method: f"{results.mean_cost(method):.0f}",
        "computed": lambda method: f"{results.mean_cost(method, 'computed'):.0f}",
        "highest": lambda method: f"{_highest(results, method):.0f}",
    }
    return cost_table(results, title, columns, [each for each in methods if results.average(each).n], [NOTE])


def _highest(results: Results, method: str) -> float:
    """Return the mean number of forward passes on the task that takes the most."""
    by_task = (results.by_length(benchmark, method).values() for benchmark in results.benchmarks)
    return max((result.cost["forward_passes"] for each in by_task for result in each), default=0.0)


def _paired(results: Results, rivals: list[str]) -> Table:
    """Compare the search with every other decoder, on the mean over tasks."""
    differences = {name: results.difference(SEARCH, name) for name in rivals}
    chances, body = corrected(differences), []
    for name, each in differences.items():
        cells = (points(each), chance(chances[name]), str(each.n)) if each else [MISSING] * 3
        body.append((results.label(name), f"{results.mean_cost(name):.0f}", *cells))
    title = f"{results.label(SEARCH)} ({results.mean_cost(SEARCH):.0f} on average) minus each other decoder"
    note = "Paired by problem, the mean over tasks ± its standard error; p corrected for "
    note += f"{len(chances)} comparisons (Holm)."
    return Table.of("paired", title, ("against", "forward passes", "points", "p", "n"), body, [note], rank=False)


def _budgets(results: Results, budgets: list[str], rivals: list[str]) -> Table:
    """Compare each budget of the search with the best other decoder that stays within it on every task."""
    most = {name: _highest(results, name) for name in rivals}
    specs, length = {method.name: method.spec for method in results.methods}, results.parts[0].lengths[0]
    body = []
    for name in budgets:
        budget = decoder.make(specs[name]).max_forward_passes(length)
        within = [rival for rival in rivals if 0 < most[rival] <= budget]
        best = max(within, key=lambda rival: results.average(rival).value or 0.0, default=None)
        difference = results.difference(name, best) if best else None
        beside = (results.label(best), results.average(best)) if best else (MISSING, MISSING)
        apart = (points(difference), chance(difference.p)) if difference else (MISSING, MISSING)
        body.append((results.label(name), results.average(name), *beside, *apart))
    title = "each budget of the search, and the best other decoder that stays within it on every task"
    head = ("", "average", "best other", "average", "points", "p")
    note = "A budget bounds every problem; of the others, the mean over the problems of each task is within it."
    return Table.of("paired", title, head, body, [note], rank=False)


def _lines(results: Results, cost: Mapping[str, float]) -> Iterator[tuple[str, str, float]]:
    """Yield (label, method, cost); the budgets of the search share a label, which makes them one line."""
    for method in (each for each in results.methods if each.name in cost):
        yield "search" if method.name.startswith("search-") else method.label, method.name, cost[method.name]


EXPERIMENT = Experiment("frontier", "ours", __doc__, parts, findings, measure)
