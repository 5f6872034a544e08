"""How many right answers does each decoder give for the rows it takes, and what makes our search worth its rows?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any

from unmask.core import decoder
from unmask.experiments.experiment import Claim, Experiment, Findings, above, chance, judge, points
from unmask.experiments.methods import Method, Part, selected
from unmask.experiments.results import Evidence, circumstances, seconds_of
from unmask.experiments.runner import Runner
from unmask.experiments.setup import BENCHMARKS, Setup
from unmask.report.frontier import draw_frontier
from unmask.report.plots import ROWS, Plot, Point
from unmask.report.statistics import holm
from unmask.report.tables import MISSING, Table
from unmask.runs.generation import Generation
from unmask.runs.settings import Decoding
from unmask.runs.text import read_prompt
from unmask.tasks import task

LENGTH = 256  # for models without an answer length of their own
SHARES = (
    0.1,
    0.15,
    0.2,
    0.25,
    0.3,
    0.4,
    0.6,
    0.8,
    1.0,
    1.6,
    3.2,
)  # budgets of the search, as shares of what the paper's search takes
MILLISECONDS = "milliseconds per problem"
TIMED, TIMES = 32, 2  # problems that are timed, unless a batch is chosen, and how often: the shortest time counts
SEARCH = "search-100"
PAPER = "ots"
PATH = "adaptive(sure=0.98, temperature=1.6, block={block})"
# What is taken out of the search or put in the place of a part of it.
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
    """Those that draw nothing at random."""
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
            Method(f"search-{share}", f"search, {rows} rows", f"search(budget={rows})")
            for share, rows in shares.items()
        ),
        *(
            Method(name, label, spec.format(block=block, half=max(1, block // 2)))
            for name, (label, spec) in ABLATION.items()
        ),
    ]


def drawn(setup: Setup, length: int) -> list[Method]:
    """Those whose answers depend on the seed."""
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
    """Seconds per problem of every decoder on every benchmark, with a batch of problems decoded together."""
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
    return {"seconds": seconds, "problems": count, **circumstances(model, runner.placement)}


def findings(evidence: Evidence) -> Findings:
    names = [method.name for method in evidence.methods]
    decoders = [name for name in names if name not in ABLATION]
    rivals = [name for name in decoders if not name.startswith("search-")]
    tables = [
        _table(evidence, "every decoder: accuracy, %, and rows per problem", decoders),
        _paired(evidence, rivals),
        _budgets(evidence, [name for name in decoders if name not in rivals], rivals),
        _table(evidence, "the search, and what becomes of it", [SEARCH, *ABLATION]),
    ]
    rows = {name: evidence.mean_cost(name, "forward_passes") for name in decoders}
    plots = [_plot(evidence, "frontier", ROWS, rows)]
    if evidence.measured:
        plots.append(_plot(evidence, "frontier-seconds", _axis(evidence), _milliseconds(evidence)))
    pictures = {plot.name: partial(draw_frontier, plot) for plot in plots}
    return Findings(tables, _claims(evidence), pictures=pictures)


def _milliseconds(evidence: Evidence) -> dict[str, float]:
    return {name: 1000 * sum(each.values()) / len(each) for name, each in evidence.measured["seconds"].items()}


def _axis(evidence: Evidence) -> str:
    measured = evidence.measured
    return f"{MILLISECONDS}, {measured['problems']} together on {measured['machine']['name']}"


def _table(evidence: Evidence, title: str, methods: list[str]) -> Table:
    body = []
    for method in (each for each in methods if evidence.average(each).n):
        accuracy = [evidence.accuracy(benchmark, method) for benchmark in evidence.benchmarks]
        rows = [_rows(evidence, benchmark, method) for benchmark in evidence.benchmarks]
        costs = (evidence.mean_cost(method, "forward_passes"), evidence.mean_cost(method, "computed"), max(rows))
        body.append((evidence.label(method), *accuracy, evidence.average(method), *(f"{cost:.0f}" for cost in costs)))
    head = (
        "",
        *map(evidence.shown, evidence.benchmarks),
        "average",
        "forward passes",
        "computed",
        "most forward passes",
    )
    notes = [
        "Rows are means per problem, as many as a decoder asks for; equal rows of a problem are computed once. "
        "The last column is that of the task with the highest mean."
    ]
    return Table.of("accuracy", title, head, body, notes, rank=False)


def _rows(evidence: Evidence, benchmark: str, method: str) -> float:
    return max((result.cost["forward_passes"] for result in evidence.results(benchmark, method).values()), default=0.0)


def _paired(evidence: Evidence, rivals: list[str]) -> Table:
    """The search against every other decoder, on the mean over tasks."""
    differences = {name: evidence.difference(SEARCH, name) for name in rivals}
    known = {name: each for name, each in differences.items() if each}
    corrected = dict(zip(known, holm([each.p for each in known.values()]), strict=True))
    body = []
    for name in rivals:
        each = known.get(name)
        cells = (points(each), chance(corrected[name]), str(each.n)) if each else (MISSING, MISSING, MISSING)
        body.append((evidence.label(name), f"{evidence.mean_cost(name, 'forward_passes'):.0f}", *cells))
    title = f"{evidence.label(SEARCH)} ({evidence.mean_cost(SEARCH, 'forward_passes'):.0f} on average) minus each other decoder"
    notes = [
        f"Paired by problem, the mean over tasks ± its standard error; p corrected for {len(known)} comparisons (Holm)."
    ]
    return Table.of("paired", title, ("against", "forward passes", "points", "p", "n"), body, notes, rank=False)


def _budgets(evidence: Evidence, budgets: list[str], rivals: list[str]) -> Table:
    """Beside each budget of the search, the best decoder that stays within it on every task."""
    most = {name: max(_rows(evidence, task, name) for task in evidence.benchmarks) for name in rivals}
    body = []
    for name in budgets:
        within = [rival for rival in rivals if 0 < most[rival] <= _budget(evidence, name)]
        best = max(within, key=lambda rival: evidence.average(rival).value or 0.0, default=None)
        difference = evidence.difference(name, best) if best else None
        beside = (evidence.label(best), evidence.average(best)) if best else (MISSING, MISSING)
        apart = (points(difference), chance(difference.p)) if difference else (MISSING, MISSING)
        body.append((evidence.label(name), evidence.average(name), *beside, *apart))
    title = "each budget of the search, and the best other decoder that stays within it on every task"
    head = ("", "average", "best other", "average", "points", "p")
    notes = ["A budget bounds every problem; of the others, the mean over the problems of each task is within it."]
    return Table.of("paired", title, head, body, notes, rank=False)


def _budget(evidence: Evidence, name: str) -> int:
    method = next(method for method in evidence.methods if method.name == name)
    return decoder.make(method.spec).max_forward_passes(evidence.parts[0].lengths[0])


def _claims(evidence: Evidence) -> list[Claim]:
    claims = [
        above(evidence, "An adaptive path is above low-confidence, with fewer rows", "adaptive-995", "low-confidence"),
        above(evidence, "The search is above OTS with 4 beams at its rows", SEARCH, PAPER),
        above(evidence, "The search with 0.3 of its rows is above OTS with 4 beams", "search-30", PAPER),
        above(evidence, "OTS with the interleaved score is above OTS", "ots-combs", PAPER),
    ]
    for benchmark in evidence.benchmarks:
        text = f"The search is above OTS with 4 beams on {evidence.shown(benchmark)}"
        claims.append(judge(text, "", evidence.difference(SEARCH, PAPER, [benchmark])))
    return claims


def _plot(evidence: Evidence, name: str, axis: str, cost: Mapping[str, float]) -> Plot:
    """The budgets of the search are one line, every other decoder a point."""
    lines: dict[str, list[Point]] = {}
    for method in (each for each in evidence.methods if each.name in cost):
        if (accuracy := evidence.average(method.name)).value is not None:
            label = "search" if method.name.startswith("search-") else method.label
            lines.setdefault(label, []).append(Point(cost[method.name], accuracy))
    ordered = tuple((label, tuple(sorted(points, key=lambda point: point.x))) for label, points in lines.items())
    title = f"{evidence.setup.model} · average over {len(evidence.benchmarks)} tasks"
    return Plot(name, title, axis, ordered)


EXPERIMENT = Experiment("frontier", "ours", __doc__, parts, findings, measure)
