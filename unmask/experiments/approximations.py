"""What do caches, sure writes and early end cost in answers, and how much less do they compute?"""

from __future__ import annotations

import re

from unmask.experiments.cells import Method, Part
from unmask.experiments.experiment import Experiment, Findings, Verdict
from unmask.experiments.found import Found
from unmask.experiments.methods import asked
from unmask.experiments.setting import BENCHMARKS, Setting
from unmask.experiments.tables import paired, rows_of
from unmask.experiments.verdicts import figure
from unmask.report.plots import Plot, Point
from unmask.report.statistics import Estimate, joint
from unmask.report.tables import Table

SOURCE = "ours"
EXACT = "ots"
LENGTH = 256  # for models whose answers have no length of their own
SURE = 0.9
# By name: what is kept, how sure a draw is that is written at once, whether an answer's end ends its row.
KINDS: dict[str, tuple[str, float | None, bool]] = {
    EXACT: ("none", None, False),
    "early-end": ("none", None, True),
    "sure": ("none", SURE, False),
    "prefix": ("prefix", None, False),
    "prefix-4": ("prefix(refresh=4)", None, False),
    "dual": ("dual", None, False),
    "dual-8": ("dual(refresh=8)", None, False),
    "dual-4": ("dual(refresh=4)", None, False),
    "dual-2": ("dual(refresh=2)", None, False),
    "dual-sure": ("dual", SURE, False),
    "dual-2-sure": ("dual(refresh=2)", SURE, False),
}


def parts(setting: Setting) -> list[Part]:
    """One a kind and benchmark, since a cache is a run's."""
    methods = asked(setting, (_method(setting, name) for name in KINDS))
    return [
        Part(
            name=f"{benchmark.lower()}-{method.name}",
            benchmark=benchmark,
            task=setting.tasks[benchmark],
            methods=(method,),
            lengths=(setting.at(benchmark, LENGTH),),
            limit=setting.limit,
            cache=KINDS[method.name][0],
            early_end=KINDS[method.name][2],
        )
        for benchmark in setting.chosen(*BENCHMARKS)
        for method in methods
    ]


def _method(setting: Setting, name: str) -> Method:
    cache, sure, early = KINDS[name]
    search = f"beams={setting.beams}, temperature={setting.temperature}"
    said = [
        *([f"cache {cache}"] if cache != "none" else []),
        *([f"sure={sure}"] if sure else []),
        *(["early end"] if early else []),
    ]
    spec = f"ots({search}, sure={sure})" if sure else f"ots({search})"
    return Method(name, " + ".join(said) or "exact", spec)


def findings(found: Found) -> Findings:
    return Findings([_table(found), paired(found, EXACT)], _verdicts(found), [_plot(found)])


def _plot(found: Found) -> Plot:
    """A line joins what differs in how often all is computed anew."""
    lines: dict[str, list[Point]] = {}
    for method in found.methods:
        point = Point(float(round(_positions(found, method.name))), found.average(method.name))
        if point.x and point.found.value is not None:
            lines.setdefault(re.sub(r"\(refresh=\d+\)", "", method.label), []).append(point)
    made = tuple((label, tuple(sorted(points, key=lambda one: one.x))) for label, points in lines.items())
    title = f"{found.setting.model} · average over {len(found.benchmarks)} tasks"
    return Plot("approximations", title, "positions computed a problem", made)


def _table(found: Found) -> Table:
    body: list[list[str | Estimate | None]] = []
    whole = _positions(found, EXACT)
    for method in found.methods:
        accuracy = [found.accuracy(benchmark, method.name) for benchmark in found.benchmarks]
        positions = _positions(found, method.name)
        share = f"{100 * positions / whole:.0f} %" if positions and whole else "–"
        body.append([method.label, *accuracy, found.average(method.name), f"{positions:,.0f}", share])
    head = ["", *map(found.shown, found.benchmarks), "average", "positions", "of exact"]
    return rows_of("accuracy, %, and positions computed a problem", head, body)


def _positions(found: Found, name: str) -> float:
    """A problem's, each benchmark counting alike; 0 where nothing is recorded."""
    results = [one for benchmark in found.benchmarks for one in found.results(benchmark, name).values()]
    return sum(one.cost["positions"] for one in results) / len(results) if results else 0.0


def _verdicts(found: Found) -> list[Verdict]:
    verdicts = []
    for method in found.methods:
        pairs = [found.compare(benchmark, EXACT, method.name) for benchmark in found.benchmarks]
        result = joint([pair for pair in pairs if pair is not None])
        if method.name == EXACT or result is None or None in pairs:
            continue
        within = result.difference >= -(result.error or 0.0)
        claim = f"OTS with {method.label} is at most one standard error below exact OTS"
        said = f"{method.label} less exact: {figure(result)}"
        verdicts.append(Verdict(claim, SOURCE, "holds" if within else "does not hold", said))
    return verdicts


EXPERIMENT = Experiment("approximations", SOURCE, __doc__ or "", parts, findings)
