"""Is Order-Token Search above low-confidence and random remasking at every length of the answer?"""

from __future__ import annotations

from dataclasses import replace

from unmask.experiments.cells import Part
from unmask.experiments.experiment import Experiment, Findings, Verdict
from unmask.experiments.found import Found
from unmask.experiments.methods import pick, tabled
from unmask.experiments.paper import MODELS, model_of, paper
from unmask.experiments.setting import Setting
from unmask.experiments.tables import cells
from unmask.experiments.verdicts import all_of, figure, outcome
from unmask.report.plots import Plot, Point
from unmask.report.statistics import joint

BENCHMARK, SOURCE = "MATH500", "Figure 1(d)"


def parts(setting: Setting) -> list[Part]:
    methods = pick(setting, "low-confidence", "random", "ots")
    return [replace(part, limit=setting.few) for part in tabled(setting, [BENCHMARK], methods, setting.axis)]


def findings(found: Found) -> Findings:
    said = paper("table-1")
    rows = said["models"][model_of(found.setting.model) or MODELS[0]]
    beside = {name: (*row["benchmarks"][BENCHMARK], row["averages"][BENCHMARK]) for name, row in rows.items()}
    table = cells(found, BENCHMARK, beside, [*map(str, said["lengths"]), "average"])
    claims = [_claim(found, rival) for rival in ("low-confidence", "random")]
    return Findings([table], claims, [_plot(found)])


def _plot(found: Found) -> Plot:
    lines = []
    for method in found.methods:
        results = found.results(BENCHMARK, method.name)
        lines.append((method.label, tuple(Point(float(at), one.accuracy) for at, one in results.items())))
    title = f"{found.setting.model} · {found.setting.tasks[BENCHMARK]}"
    return Plot("figure-1d", title, "length of the answer", tuple(lines), zero=True)


def _claim(found: Found, rival: str) -> Verdict:
    each = []
    for length in found.lengths(BENCHMARK):
        pair = found.compare(BENCHMARK, rival, "ots", length=length)
        result = joint([pair] if pair else [])
        each.append(Verdict(f"L={length}", SOURCE, outcome(result), figure(result) if result else "no records"))
    return all_of(f"OTS is above {found.label(rival)} at every length", SOURCE, each)


EXPERIMENT = Experiment("figure-1d", SOURCE, __doc__ or "", parts, findings)
