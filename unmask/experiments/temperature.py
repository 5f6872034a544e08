"""Does the gain come from the search, or from the temperature alone?"""

from __future__ import annotations

from dataclasses import replace

from unmask.experiments.experiment import Experiment, Findings, above
from unmask.experiments.methods import Method, Part, selected, single_parts
from unmask.experiments.paper import paper
from unmask.experiments.paper_tables import benchmark_table, paired_table
from unmask.experiments.results import Evidence
from unmask.experiments.setup import Setup

BENCHMARK = "Countdown"
LENGTH = 128  # of the paper


def parts(setup: Setup) -> list[Part]:
    """With one beam a search is a plain path."""
    temperature, beams = setup.temperature, min(setup.fixed_beams, setup.most_beams)
    methods = [
        Method("greedy", "K=1, τ=0", "ots(beams=1, temperature=0.0)"),
        Method("sampled", f"K=1, τ={temperature}", f"ots(beams=1, temperature={temperature})"),
        Method("ots", f"K={beams}, τ={temperature}", f"ots(beams={beams}, temperature={temperature})"),
    ]
    parts = single_parts(setup, [BENCHMARK], LENGTH, lambda _: selected(setup, methods))
    return [replace(part, limit=setup.limit) for part in parts]


def findings(evidence: Evidence) -> Findings:
    figures = paper("temperature")
    published = {"paper: τ=0.4": {name: figures[name] for name in ("greedy", "sampled", "ots")}}
    claims = {
        "The search is above a single path at the same temperature (paper: 22.7 → 34.4)": ("ots", "sampled"),
        "The search is above the greedy path (paper: 20.7 → 34.4)": ("ots", "greedy"),
        "The temperature alone is above the greedy path (paper: 20.7 → 22.7)": ("sampled", "greedy"),
    }
    tables = [benchmark_table(evidence, BENCHMARK, published), paired_table(evidence, "ots")]
    return Findings(tables, [above(evidence, text, *methods) for text, methods in claims.items()])


EXPERIMENT = Experiment("temperature", "Table S2", __doc__, parts, findings)
