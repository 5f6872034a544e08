"""Does the gain come from the search, or from the temperature alone?"""

from functools import partial
from typing import Any

from unmask.experiments.experiment import Experiment, Findings, above
from unmask.experiments.results import Results
from unmask.experiments.setup import Method, Part, Setup, single_parts
from unmask.experiments.tables import benchmark_table, paired_table, paper

BENCHMARK = "Countdown"
LENGTH = 128  # of the paper
CLAIMS = {
    "The search is above a single path at the same temperature (paper: 22.7 → 34.4)": ("ots", "sampled"),
    "The search is above the greedy path (paper: 20.7 → 34.4)": ("ots", "greedy"),
    "The temperature alone is above the greedy path (paper: 20.7 → 22.7)": ("sampled", "greedy"),
}
FIRST_CLAIMS = {"K = 5 is above one path at the same τ (paper: 22.7 → 34.4)": ("ots", "sampled")}
FIRST_CELL = """Does the paper's gain appear where it is largest? Run this cell first when the weights are at hand.

Countdown at L=128, one path and K = 5 beams at τ = 0.4: a pair of Table S2, and the largest gain of Table 1.
"""


def parts(setup: Setup) -> list[Part]:
    """Return all rows of Table S2. With one beam a search is a plain path."""
    return pair(setup, Method("greedy", "K=1, τ=0", "ots(beams=1, temperature=0.0)"), limit=setup.limit)


def pair(setup: Setup, *first: Method, **more: Any) -> list[Part]:
    """Return the path and the search at the same temperature, after other methods."""
    tau, beams = setup.temperature, min(setup.fixed_beams, setup.most_beams)
    sampled = Method("sampled", f"K=1, τ={tau}", f"ots(beams=1, temperature={tau})")
    search = Method("ots", f"K={beams}, τ={tau}", f"ots(beams={beams}, temperature={tau})")
    return single_parts(setup, [BENCHMARK], LENGTH, lambda _: [*first, sampled, search], **more)


def findings(column: str, claims: dict[str, tuple[str, str]], results: Results) -> Findings:
    figures = paper("temperature")
    published = {column: {name: figures[name] for name in ("greedy", "sampled", "ots")}}
    tables = [benchmark_table(results, BENCHMARK, published=published), paired_table(results, "ots")]
    return Findings(tables, [above(results, text, *methods) for text, methods in claims.items()])


EXPERIMENT = Experiment("temperature", "Table S2", __doc__, parts, partial(findings, "paper: τ=0.4", CLAIMS))
FIRST_FINDINGS = partial(findings, "paper: L=128, τ=0.4", FIRST_CLAIMS)
FIRST = Experiment("first-cell", "Table S2", FIRST_CELL, pair, FIRST_FINDINGS)
