"""Is Order-Token Search above low-confidence and random remasking at every answer length?"""

from __future__ import annotations

from dataclasses import replace

from unmask.experiments.experiment import Claim, Experiment, Findings, all_hold, judge
from unmask.experiments.methods import Part, pick, table_parts
from unmask.experiments.paper import published_columns
from unmask.experiments.paper_tables import benchmark_table, length_plot
from unmask.experiments.results import Evidence
from unmask.experiments.setup import Setup

BENCHMARK = "MATH500"


def parts(setup: Setup) -> list[Part]:
    methods = pick(setup, "low-confidence", "random", "ots")
    return [replace(part, limit=setup.few) for part in table_parts(setup, [BENCHMARK], methods, setup.axis)]


def findings(evidence: Evidence) -> Findings:
    published = published_columns("table-1", evidence.setup.model, BENCHMARK)
    claims = [_claim(evidence, rival) for rival in ("low-confidence", "random")]
    return Findings([benchmark_table(evidence, BENCHMARK, published)], claims, [length_plot(evidence, BENCHMARK)])


def _claim(evidence: Evidence, rival: str) -> Claim:
    lengths = evidence.groups[BENCHMARK].lengths
    differences = {length: evidence.difference("ots", rival, [BENCHMARK], length=length) for length in lengths}
    claims = [judge(f"L={length}", "", difference) for length, difference in differences.items()]
    return all_hold(f"OTS is above {evidence.label(rival)} at every length", claims)


EXPERIMENT = Experiment("figure-1d", "Figure 1(d)", __doc__, parts, findings)
