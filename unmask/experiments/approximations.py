"""How much accuracy do caches, sure writes and early end lose, and how much less do they compute?"""

from __future__ import annotations

import re
from typing import Any

from unmask.experiments.experiment import Claim, Experiment, Findings, at_most_below
from unmask.experiments.methods import Method, Part, selected
from unmask.experiments.results import Results
from unmask.experiments.setup import BENCHMARKS, Setup
from unmask.experiments.tables import accuracies, average_plot, paired_table
from unmask.report.plots import Plot
from unmask.report.tables import MISSING, Table

EXACT = "ots"
MARGIN = 0.01  # of accuracy that an approximation may lose
LENGTH = 256  # for models without an answer length of their own
SURE = 0.9
# by name: the cache, the confidence above which a draw is written at once, whether a row stops at end-of-text
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
    """Return one part per kind and benchmark, since a run has one cache."""
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


def findings(results: Results) -> Findings:
    positions = {method.name: results.mean_cost(method.name, "positions") for method in results.methods}
    tables = [_table(results, positions), paired_table(results, EXACT)]
    return Findings(tables, _claims(results), [_plot(results, positions)])


def _plot(results: Results, positions: dict[str, float]) -> Plot:
    """Join caches that differ only in how often they are refreshed."""
    cells = (
        (re.sub(r"\(refresh=\d+\)", "", method.label), method.name, float(round(positions[method.name])))
        for method in results.methods
    )
    return average_plot(results, "approximations", "positions computed per problem", cells)


def _table(results: Results, positions: dict[str, float]) -> Table:
    body, exact = [], positions.get(EXACT)
    for method in results.methods:
        count = positions[method.name]
        share = f"{100 * count / exact:.0f} %" if count and exact else MISSING
        body.append((method.label, *accuracies(results, method.name), f"{count:,.0f}", share))
    head = ("", *map(results.shown, results.benchmarks), "average", "positions", "of exact")
    return Table.of("accuracy", "accuracy, %, and positions computed per problem", head, body, rank=False)


def _claims(results: Results) -> list[Claim]:
    claims = []
    for method in results.methods:
        difference = results.difference(method.name, EXACT)
        if method.name != EXACT and difference is not None:
            text = f"OTS with {method.label} loses at most {100 * MARGIN:g} point against exact OTS"
            claims.append(at_most_below(text, f"{method.label} minus exact", difference, MARGIN))
    return claims


EXPERIMENT = Experiment("approximations", "ours", __doc__, parts, findings)
