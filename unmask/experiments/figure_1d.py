"""Is Order-Token Search above low-confidence and random remasking at every answer length?"""

from __future__ import annotations

from dataclasses import replace

from unmask.experiments.experiment import Claim, Experiment, Findings, all_hold, judge
from unmask.experiments.methods import Part, pick, table_parts
from unmask.experiments.results import Results
from unmask.experiments.setup import Setup
from unmask.experiments.tables import benchmark_table, length_plot, published_columns

BENCHMARK = "MATH500"


def parts(setup: Setup) -> list[Part]:
    methods = pick(setup, "low-confidence", "random", "ots")
    return [replace(part, limit=setup.few) for part in table_parts(setup, [BENCHMARK], methods, setup.axis)]


def findings(results: Results) -> Findings:
    published = published_columns("table-1", results.setup.model, BENCHMARK)
    claims = [_claim(results, rival) for rival in ("low-confidence", "random")]
    return Findings([benchmark_table(results, BENCHMARK, published)], claims, [length_plot(results, BENCHMARK)])


def _claim(results: Results, rival: str) -> Claim:
    lengths = results.groups[BENCHMARK].lengths
    differences = {length: results.difference("ots", rival, [BENCHMARK], length=length) for length in lengths}
    claims = [judge(f"L={length}", "", difference) for length, difference in differences.items()]
    return all_hold(f"OTS is above {results.label(rival)} at every length", claims)


EXPERIMENT = Experiment("figure-1d", "Figure 1(d)", __doc__, parts, findings)
