"""How much accuracy do caches, sure writes and early end lose, and how much less do they compute?"""

import re
from typing import Any

from unmask.experiments.experiment import ALPHA, Claim, Experiment, Findings, decide, sides
from unmask.experiments.results import Results
from unmask.experiments.setup import BENCHMARKS, Method, Part, Setup, selected
from unmask.experiments.tables import average_plot, chance, cost_table, paired_table, points
from unmask.report.statistics import Difference
from unmask.report.tables import MISSING

EXACT = "ots"
MARGIN = 0.01  # of accuracy that an approximation may lose
LENGTH = 256  # for models without an answer length of their own
SURE = 0.9  # confidence above which a draw is written at once
KINDS: dict[str, dict[str, Any]] = {  # by name, the settings that are not those of the exact search
    EXACT: {},
    "early-end": {"early_end": True},
    "sure": {"sure": SURE},
    "prefix": {"cache": "prefix"},
    "prefix-4": {"cache": "prefix(refresh=4)"},
    "dual": {"cache": "dual"},
    "dual-8": {"cache": "dual(refresh=8)"},
    "dual-4": {"cache": "dual(refresh=4)"},
    "dual-2": {"cache": "dual(refresh=2)"},
    "dual-sure": {"cache": "dual", "sure": SURE},
    "dual-2-sure": {"cache": "dual(refresh=2)", "sure": SURE},
}
WORDS = {"cache": "cache {}", "sure": "sure={}", "early_end": "early end"}


def parts(setup: Setup) -> list[Part]:
    """Return one part per kind and benchmark, since a run has one cache."""
    parts = []
    methods = selected(setup, (_method(setup, *kind) for kind in KINDS.items()))
    for benchmark in setup.chosen_for_many(*BENCHMARKS):
        for method in methods:
            run = {name: value for name, value in KINDS[method.name].items() if name != "sure"}
            run |= {"limit": setup.limit, "seeds": setup.search_seeds}
            parts.append(Part.of(setup, benchmark, method.name, [method], [setup.at(benchmark, LENGTH)], **run))
    return parts


def _method(setup: Setup, name: str, settings: dict[str, Any]) -> Method:
    label = " + ".join(WORDS[key].format(value) for key, value in settings.items()) or "exact"
    sure = f", sure={settings['sure']}" if "sure" in settings else ""
    return Method(name, label, f"ots(beams={setup.beams}, temperature={setup.temperature}{sure})")


def findings(results: Results) -> Findings:
    positions = {method.name: results.mean_cost(method.name, "positions") for method in results.methods}
    exact = positions.get(EXACT)

    def share(method: str) -> str:
        return f"{100 * positions[method] / exact:.0f} %" if positions[method] and exact else MISSING

    columns = {"positions": lambda method: f"{positions[method]:,.0f}", "of exact": share}
    table = cost_table(results, "accuracy, %, and positions computed per problem", columns)
    lines = (  # caches that differ only in how often they are refreshed are one line
        (re.sub(r"\(refresh=\d+\)", "", method.label), method.name, float(round(positions[method.name])))
        for method in results.methods
    )
    plot = average_plot(results, "approximations", "positions computed per problem", lines)
    compared = {method.label: results.difference(method.name, EXACT) for method in results.methods}
    claims = [_claim(label, each) for label, each in compared.items() if each and label != results.label(EXACT)]
    return Findings([table, paired_table(results, EXACT)], claims, [plot])


def _claim(label: str, difference: Difference) -> Claim:
    """Judge by one-sided tests: whether the difference is significantly above minus the margin, or below it."""
    higher, lower = sides(difference, -MARGIN)
    figures = f"{label} minus exact: {points(difference)} ({chance(min(higher, lower))}, one-sided)"
    text = f"OTS with {label} loses at most {100 * MARGIN:g} point against exact OTS"
    return Claim(text, decide(higher <= ALPHA, lower <= ALPHA), figures)


EXPERIMENT = Experiment("approximations", "ours", __doc__, parts, findings)
