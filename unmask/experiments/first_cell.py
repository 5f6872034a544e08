"""Does the paper's gain appear where it is largest? The one cell to run first when the weights are at hand.

Countdown at L=128, one path and K = 5 beams at τ = 0.4: a pair of Table S2, and the largest gain of Table 1.
"""

from __future__ import annotations

from unmask.experiments.experiment import Experiment, Findings, above
from unmask.experiments.methods import Method, Part, selected, single_parts
from unmask.experiments.paper import paper
from unmask.experiments.paper_tables import benchmark_table, paired_table
from unmask.experiments.results import Evidence
from unmask.experiments.setup import Setup

BENCHMARK = "Countdown"
LENGTH = 128  # of the paper


def parts(setup: Setup) -> list[Part]:
    tau, beams = setup.temperature, min(setup.fixed_beams, setup.most_beams)
    methods = [
        Method("sampled", f"K=1, τ={tau}", f"ots(beams=1, temperature={tau})"),
        Method("ots", f"K={beams}, τ={tau}", f"ots(beams={beams}, temperature={tau})"),
    ]
    return single_parts(setup, [BENCHMARK], LENGTH, lambda _: selected(setup, methods))


def findings(evidence: Evidence) -> Findings:
    figures = paper("temperature")
    published = {"paper: L=128, τ=0.4": {name: figures[name] for name in ("sampled", "ots")}}
    claim = above(evidence, "K = 5 is above one path at the same τ (paper: 22.7 → 34.4)", "ots", "sampled")
    return Findings([benchmark_table(evidence, BENCHMARK, published), paired_table(evidence, "ots")], [claim])


EXPERIMENT = Experiment("first-cell", "Table S2", __doc__, parts, findings)
