"""What do caches, sure writes and early end cost in answers, and how much less do they compute?"""

from __future__ import annotations

import re
from typing import Any

from unmask.experiments.experiment import Claim, Experiment, Findings, at_most_below
from unmask.experiments.methods import Method, Part, selected
from unmask.experiments.paper_tables import paired_table
from unmask.experiments.results import Evidence
from unmask.experiments.setup import BENCHMARKS, Setup
from unmask.report.plots import Plot, Point
from unmask.report.tables import MISSING, Table

EXACT = "ots"
MARGIN = 0.01  # of accuracy that an approximation may lose
LENGTH = 256  # for models without an answer length of their own
SURE = 0.9
# By name: the cache, the probability above which a draw is written at once, whether the end of the text ends its row.
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


def parts(setup: Setup) -> list[Part]:
    """One per kind and benchmark, since a run has one cache."""
    methods = selected(setup, (_method(setup, name) for name in KINDS))
    parts = []
    for benchmark in setup.chosen_for_many(*BENCHMARKS):
        length = setup.at(benchmark, LENGTH)
        for method in methods:
            cache, _, early_end = KINDS[method.name]
            approximation = {"cache": cache, "early_end": early_end}
            more: dict[str, Any] = {"limit": setup.limit, "seeds": setup.search_seeds, **approximation}
            parts.append(Part.of(setup, benchmark, method.name, [method], [length], **more))
    return parts


def _method(setup: Setup, name: str) -> Method:
    cache, sure, early = KINDS[name]
    words = (f"cache {cache}" if cache != "none" else "", f"sure={sure}" if sure else "", "early end" if early else "")
    settings = f"beams={setup.beams}, temperature={setup.temperature}" + (f", sure={sure}" if sure else "")
    return Method(name, " + ".join(filter(None, words)) or "exact", f"ots({settings})")


def findings(evidence: Evidence) -> Findings:
    positions = {method.name: evidence.mean_cost(method.name, "positions") for method in evidence.methods}
    tables = [_table(evidence, positions), paired_table(evidence, EXACT)]
    return Findings(tables, _claims(evidence), [_plot(evidence, positions)])


def _plot(evidence: Evidence, positions: dict[str, float]) -> Plot:
    """A line joins caches that differ only in how often they are refreshed."""
    lines: dict[str, list[Point]] = {}
    for method in evidence.methods:
        point = Point(float(round(positions[method.name])), evidence.average(method.name))
        if point.x and point.estimate.value is not None:
            lines.setdefault(re.sub(r"\(refresh=\d+\)", "", method.label), []).append(point)
    ordered = tuple((label, tuple(sorted(points, key=lambda point: point.x))) for label, points in lines.items())
    title = f"{evidence.setup.model} · average over {len(evidence.benchmarks)} tasks"
    return Plot("approximations", title, "positions computed per problem", ordered)


def _table(evidence: Evidence, positions: dict[str, float]) -> Table:
    body, exact = [], positions.get(EXACT)
    for method in evidence.methods:
        accuracy = [evidence.accuracy(benchmark, method.name) for benchmark in evidence.benchmarks]
        count = positions[method.name]
        share = f"{100 * count / exact:.0f} %" if count and exact else MISSING
        body.append((method.label, *accuracy, evidence.average(method.name), f"{count:,.0f}", share))
    head = ("", *map(evidence.shown, evidence.benchmarks), "average", "positions", "of exact")
    return Table.of("accuracy", "accuracy, %, and positions computed per problem", head, body, rank=False)


def _claims(evidence: Evidence) -> list[Claim]:
    claims = []
    for method in evidence.methods:
        difference = evidence.difference(method.name, EXACT)
        if method.name != EXACT and difference is not None:
            text = f"OTS with {method.label} loses at most {100 * MARGIN:g} point against exact OTS"
            claims.append(at_most_below(text, f"{method.label} minus exact", difference, MARGIN))
    return claims


EXPERIMENT = Experiment("approximations", "ours", __doc__, parts, findings)
