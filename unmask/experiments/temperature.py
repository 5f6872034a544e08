"""Is the gain the search's, or would a tempered draw alone have it?"""

from __future__ import annotations

from dataclasses import replace

from unmask.experiments.cells import Method, Part
from unmask.experiments.experiment import Experiment, Findings, Verdict
from unmask.experiments.found import Found
from unmask.experiments.methods import alone, asked
from unmask.experiments.paper import paper
from unmask.experiments.setting import Setting
from unmask.experiments.tables import cells, paired
from unmask.experiments.verdicts import above

BENCHMARK, SOURCE = "Countdown", "Table S2"
LENGTH = 128  # of the paper
BEAMS = 5


def parts(setting: Setting) -> list[Part]:
    """One beam is a plain path: the search then has nothing to choose from."""
    if not setting.chosen(BENCHMARK):
        return []
    warm, beams = setting.temperature, min(BEAMS, setting.most_beams)
    methods = [
        Method("greedy", "K=1, τ=0", "ots(beams=1, temperature=0.0)"),
        Method("sampled", f"K=1, τ={warm}", f"ots(beams=1, temperature={warm})"),
        Method("ots", f"K={beams}, τ={warm}", f"ots(beams={beams}, temperature={warm})"),
    ]
    part = alone(setting, BENCHMARK, asked(setting, methods), setting.at(BENCHMARK, LENGTH))
    return [replace(part, limit=setting.limit)]


def findings(found: Found) -> Findings:
    said = paper("temperature")
    beside = {name: (said[name],) for name in ("greedy", "sampled", "ots")}
    tables = [cells(found, BENCHMARK, beside, ["τ=0.4"]), paired(found, "ots")]
    return Findings(tables, verdicts(found))


def verdicts(found: Found) -> list[Verdict]:
    def than(claim: str, after: str, before: str) -> Verdict:
        return above(found, claim, SOURCE, after, before, [BENCHMARK])

    return [
        than("The search is above a single path at the same temperature (paper: 22.7 → 34.4)", "ots", "sampled"),
        than("The search is above the greedy path (paper: 20.7 → 34.4)", "ots", "greedy"),
        than("The temperature alone is above the greedy path (paper: 20.7 → 22.7)", "sampled", "greedy"),
    ]


EXPERIMENT = Experiment("temperature", SOURCE, __doc__ or "", parts, findings)
