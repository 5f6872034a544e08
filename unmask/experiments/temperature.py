"""Does the gain come from the search, or from the temperature alone?"""

from __future__ import annotations

from dataclasses import replace

from unmask.experiments.experiment import Experiment, Findings, above
from unmask.experiments.methods import Method, Part, selected, single_parts
from unmask.experiments.results import Results
from unmask.experiments.setup import Setup
from unmask.experiments.tables import benchmark_table, paired_table, paper

BENCHMARK = "Countdown"
LENGTH = 128  # of the paper
FIRST_CELL = """Does the paper's gain appear where it is largest? Run this cell first when the weights are at hand.

Countdown at L=128, one path and K = 5 beams at τ = 0.4: a pair of Table S2, and the largest gain of Table 1.
"""


def parts(setup: Setup) -> list[Part]:
    """Return all rows of Table S2. With one beam a search is a plain path."""
    greedy = Method("greedy", "K=1, τ=0", "ots(beams=1, temperature=0.0)")
    return [replace(part, limit=setup.limit) for part in _parts(setup, [greedy, *_pair(setup)])]


def _pair(setup: Setup) -> list[Method]:
    temperature, beams = setup.temperature, min(setup.fixed_beams, setup.most_beams)
    return [
        Method("sampled", f"K=1, τ={temperature}", f"ots(beams=1, temperature={temperature})"),
        Method("ots", f"K={beams}, τ={temperature}", f"ots(beams={beams}, temperature={temperature})"),
    ]


def _parts(setup: Setup, methods: list[Method]) -> list[Part]:
    return single_parts(setup, [BENCHMARK], LENGTH, lambda _: selected(setup, methods))


def findings(results: Results) -> Findings:
    claims = {
        "The search is above a single path at the same temperature (paper: 22.7 → 34.4)": ("ots", "sampled"),
        "The search is above the greedy path (paper: 20.7 → 34.4)": ("ots", "greedy"),
        "The temperature alone is above the greedy path (paper: 20.7 → 22.7)": ("sampled", "greedy"),
    }
    return _findings(results, "paper: τ=0.4", claims)


def _findings(results: Results, column: str, claims: dict[str, tuple[str, str]]) -> Findings:
    figures = paper("temperature")
    published = {column: {name: figures[name] for name in ("greedy", "sampled", "ots")}}
    tables = [benchmark_table(results, BENCHMARK, published), paired_table(results, "ots")]
    return Findings(tables, [above(results, text, *methods) for text, methods in claims.items()])


def first_cell_findings(results: Results) -> Findings:
    claims = {"K = 5 is above one path at the same τ (paper: 22.7 → 34.4)": ("ots", "sampled")}
    return _findings(results, "paper: L=128, τ=0.4", claims)


EXPERIMENT = Experiment("temperature", "Table S2", __doc__, parts, findings)
FIRST = Experiment("first-cell", "Table S2", FIRST_CELL, lambda setup: _parts(setup, _pair(setup)), first_cell_findings)
