"""Does low-confidence remasking win with one sample and lose with many, because its samples are too alike?"""

from __future__ import annotations

from unmask.experiments.evidence import Evidence
from unmask.experiments.experiment import Claim, Experiment, Findings, judge
from unmask.experiments.methods import Method, Part, selected, single_parts
from unmask.experiments.paper import paper
from unmask.experiments.setup import Setup
from unmask.report.gather import passes
from unmask.report.plots import Plot, curve_lines
from unmask.report.statistics import compare, estimate, mean_difference
from unmask.report.tables import pass_table

LENGTH = 256  # of the paper
RIVALS = ("random", "ar")


def parts(setup: Setup) -> list[Part]:
    return single_parts(setup, setup.passes, LENGTH, lambda at: selected(setup, _methods(at)), setup.samples)


def _methods(length: int) -> list[Method]:
    """One block over the whole answer, so that the order is free; left to right writes one token per step."""
    temperature = f"temperature={paper('pass-at-k')['temperature']}"
    return [
        Method("low-confidence", "Low-confidence", f"low-confidence(block={length}, {temperature})"),
        Method("random", "Random", f"random(block={length}, {temperature})"),
        Method("ar", "AR", f"left-to-right(block=1, {temperature})"),
    ]


def findings(evidence: Evidence) -> Findings:
    tables, claims, plots, firsts = [], [], [], {}
    for benchmark, group in evidence.groups.items():
        (length,) = group.lengths
        values = {series.name: passes(series.records[length]) for series in group.series}
        curves = {evidence.label(name): {k: estimate(curve[k]) for k in curve} for name, curve in values.items()}
        problems = max((point.n for curve in curves.values() for point in curve.values()), default=0)
        title = f"{evidence.title(benchmark)} · L={length} · pass@k, %, n={problems}"
        tables.append(pass_table(title, "method", curves))
        title = f"{evidence.setup.model} · {evidence.setup.tasks[benchmark]} · pass@k, L={length}"
        name, axis = f"pass-at-k-{benchmark.lower()}", "solved, %  (± standard error)"
        plots.append(Plot(name, title, "k", curve_lines(curves), y=axis, zero=True))
        if all(values.get(method) for method in ("low-confidence", *RIVALS)):
            claims += _claims(evidence, benchmark, values)
            firsts[benchmark] = {name: estimate(values[name][1]).value or 0.0 for name in values}
    return Findings(tables, _overall(evidence, firsts) + claims, plots)


def _overall(evidence: Evidence, firsts: dict[str, dict[str, float]]) -> list[Claim]:
    """The paper's counts over its settings, by the order of our estimates; its own benchmarks only."""
    figures = paper("pass-at-k")
    own = {name: first for name, first in firsts.items() if name != "Countdown"}
    if not own:
        return []
    places = {name: sorted(first, key=first.__getitem__, reverse=True) for name, first in own.items()}
    best, second = (sum(order[place] == "low-confidence" for order in places.values()) for place in (0, 1))
    text = f"Low-confidence is best or second at pass@1 nearly everywhere (paper: best in {figures['best-at-1']} and "
    text += f"second in {figures['second-at-1']} of {figures['settings']})"
    shown = f"best in {best}, second in {second} of {len(own)}"
    claims = [Claim(text, "holds" if best + second >= len(own) - 1 else "does not hold", shown)]
    sums = [name for name in own if name in ("GSM8K", "MATH500")]
    if sums:
        leads = sum(places[name][0] == "ar" for name in sums)
        shown = ", ".join(f"{evidence.shown(name)}: {evidence.label(places[name][0])}" for name in sums)
        text = "AR has the best pass@1 on the two sets of mathematics (paper: GSM8K and MATH500)"
        claims.append(Claim(text, "holds" if leads == len(sums) else "does not hold", shown))
    return claims


def _claims(evidence: Evidence, benchmark: str, curves: dict[str, dict[int, dict[str, float]]]) -> list[Claim]:
    most, shown, figures = min(max(curve) for curve in curves.values()), evidence.shown(benchmark), paper("pass-at-k")
    ends = ", ".join(f"{evidence.label(name)} {value}" for name, value in figures.get(benchmark, {}).items())
    published = f" (paper, {benchmark} at k={figures['most']}: {ends})" if ends else ""

    def best(k: int) -> str:
        return max(RIVALS, key=lambda name: estimate(curves[name][k]).value or 0.0)

    def ahead(k: int, after: str, before: str, text: str) -> Claim:
        names = f"{evidence.label(after)} minus {evidence.label(before)} at k={k}"
        return judge(text, names, mean_difference([compare(curves[before][k], curves[after][k])]))

    return [
        ahead(1, "low-confidence", best(1), f"{shown}: low-confidence has the best pass@1"),
        ahead(most, best(most), "low-confidence", f"{shown}: it is overtaken as k grows{published}"),
    ]


EXPERIMENT = Experiment("pass-at-k", "Figure 2", __doc__, parts, findings)
