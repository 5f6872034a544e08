"""Does low-confidence remasking win with one sample and lose with many, because its samples are too alike?"""

from __future__ import annotations

from unmask.experiments.cells import Method, Part
from unmask.experiments.experiment import Experiment, Findings, Verdict
from unmask.experiments.found import Found
from unmask.experiments.methods import alone, asked
from unmask.experiments.paper import paper
from unmask.experiments.setting import Setting
from unmask.experiments.tables import rows_of
from unmask.experiments.verdicts import figure, outcome
from unmask.report.plots import Plot, Point
from unmask.report.results import passes
from unmask.report.statistics import Estimate, compare, estimate, joint
from unmask.report.tables import Table

SOURCE = "Figure 2"
LENGTH = 256  # of the paper


def parts(setting: Setting) -> list[Part]:
    made = []
    for benchmark in setting.chosen(*setting.passes):
        length = setting.at(benchmark, LENGTH)
        made.append(alone(setting, benchmark, asked(setting, _methods(length)), length, setting.samples))
    return made


def _methods(length: int) -> list[Method]:
    """One block over the whole answer, so that the order is free; left to right writes one token a step."""
    warm = f"temperature={paper('pass-at-k')['temperature']}"
    return [
        Method("low-confidence", "Low-confidence", f"low-confidence(block={length}, {warm})"),
        Method("random", "Random", f"random(block={length}, {warm})"),
        Method("ar", "AR", f"left-to-right(block=1, {warm})"),
    ]


def findings(found: Found) -> Findings:
    tables = [_table(found, benchmark) for benchmark in found.benchmarks]
    plots = [_plot(found, benchmark) for benchmark in found.benchmarks]
    claims = [verdict for benchmark in found.benchmarks for verdict in _verdicts(found, benchmark)]
    return Findings(tables, claims, plots)


def _curve(found: Found, benchmark: str, method: str) -> dict[int, dict[str, float]]:
    return passes(found.records(benchmark, method, *found.lengths(benchmark)))


def _table(found: Found, benchmark: str) -> Table:
    curves = {method.label: _curve(found, benchmark, method.name) for method in found.methods}
    ks = sorted({k for curve in curves.values() for k in curve})
    body: list[list[str | Estimate | None]] = [
        [label, *(estimate(curve[k]) if k in curve else None for k in ks)] for label, curve in curves.items()
    ]
    length = found.lengths(benchmark)[0]
    problems = max((len(values) for curve in curves.values() for values in curve.values()), default=0)
    title = f"{benchmark} · {found.setting.tasks[benchmark]} · L={length} · pass@k, %, n={problems}"
    return rows_of(title, ["method", *(f"k={k}" for k in ks)], body, range(1, len(ks) + 1))


def _plot(found: Found, benchmark: str) -> Plot:
    lines = []
    for method in found.methods:
        curve = _curve(found, benchmark, method.name)
        if curve:
            lines.append((method.label, tuple(Point(float(k), estimate(values)) for k, values in curve.items())))
    title = f"{found.setting.model} · {found.setting.tasks[benchmark]} · pass@k, L={found.lengths(benchmark)[0]}"
    return Plot(
        f"pass-at-k-{benchmark.lower()}", title, "k", tuple(lines), y="solved, %  (± standard error)", zero=True
    )


def _verdicts(found: Found, benchmark: str) -> list[Verdict]:
    curves = {method.name: _curve(found, benchmark, method.name) for method in found.methods}
    if not all(curves.get(name) for name in ("low-confidence", "random", "ar")):
        return []
    most = min(max(curve) for curve in curves.values())
    others = ("random", "ar")

    def best(k: int) -> str:
        return max(others, key=lambda name: estimate(curves[name][k]).value or 0.0)

    def ahead(k: int, after: str, before: str, claim: str) -> Verdict:
        pair = compare(curves[before][k], curves[after][k])
        result = joint([pair] if pair else [])
        names = f"{found.label(after)} less {found.label(before)} at k={k}"
        said = f"{names}: {figure(result)}" if result else "no problem in both"
        return Verdict(claim, SOURCE, outcome(result), said)

    return [
        ahead(1, "low-confidence", best(1), f"{found.shown(benchmark)}: low-confidence has the best pass@1"),
        ahead(most, best(most), "low-confidence", f"{found.shown(benchmark)}: it is overtaken as k grows"),
    ]


EXPERIMENT = Experiment("pass-at-k", SOURCE, __doc__ or "", parts, findings)
