"""Does low-confidence remasking win with one sample and lose with many, because its samples are too alike?"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

from unmask.experiments.experiment import Claim, Experiment, Findings, all_hold, decide, judge, paired
from unmask.experiments.results import Results
from unmask.experiments.setup import Method, Part, Setup, single_parts
from unmask.experiments.tables import paper
from unmask.report.gather import passes
from unmask.report.plots import Plot, curve_lines
from unmask.report.statistics import estimate
from unmask.report.tables import pass_table

LENGTH = 256  # of the paper
RIVALS, OTHERS = ("random", "ar"), ("low-confidence", "random")  # of low-confidence, and of AR
Curves = dict[str, dict[int, dict[str, float]]]  # by method, k and problem: the share solved


def parts(setup: Setup) -> list[Part]:
    return single_parts(setup, setup.passes, LENGTH, _methods, samples=setup.samples, seeds=(0,))


def _methods(length: int) -> list[Method]:
    """Return methods with one block over the whole answer, so that the order is free; AR writes one token per step."""
    temperature = f"temperature={paper('pass-at-k')['temperature']}"
    return [
        Method("low-confidence", "Low-confidence", f"low-confidence(block={length}, {temperature})"),
        Method("random", "Random", f"random(block={length}, {temperature})"),
        Method("ar", "AR", f"left-to-right(block=1, {temperature})"),
    ]


def findings(results: Results) -> Findings:
    tables, plots, asked = [], [], {}
    for benchmark, group in results.groups.items():
        (length,) = group.lengths
        values = {series.name: passes(series.records[length]) for series in group.series}
        curves = {results.label(name): {k: estimate(curve[k]) for k in curve} for name, curve in values.items()}
        problems = max((point.n for curve in curves.values() for point in curve.values()), default=0)
        title = f"{results.title(benchmark)} · L={length} · pass@k, %, n={problems}"
        tables.append(pass_table(title, "method", curves))
        name, title = f"pass-at-k-{benchmark.lower()}", f"{results.plot_title(benchmark)} · pass@k, L={length}"
        plots.append(Plot(name, title, "k", curve_lines(curves), y="solved, %  (± standard error)", zero=True))
        if all(values.get(method) for method in ("low-confidence", *RIVALS)):
            asked[benchmark] = values
    claims = [claim for benchmark, curves in asked.items() for claim in _claims(results, benchmark, curves)]
    return Findings(tables, _overall(results, asked) + claims, plots)


def _overall(results: Results, asked: dict[str, Curves]) -> list[Claim]:
    """Judge the paper's claims over its settings, on its own benchmarks."""
    own = {name: curves for name, curves in asked.items() if name != "Countdown"}
    claims = [_nearly_everywhere(results, own)] if own else []
    if sums := {name: curves for name, curves in own.items() if name in ("GSM8K", "MATH500")}:
        text = "AR has the best pass@1 and pass@k on the two sets of mathematics (paper: GSM8K and MATH500)"
        claims.append(all_hold(text, (_leads(results, name, curves) for name, curves in sums.items())))
    if (curves := own.get("HumanEval")) is not None:
        text = f"{results.shown('HumanEval')}: AR has the lowest pass@1 (paper, HumanEval)"
        claims.append(all_hold(text, (_ahead(results, curves, 1, name, "ar") for name in OTHERS)))
    return claims


def _leads(results: Results, benchmark: str, curves: Curves) -> Claim:
    """Judge the claim that AR is above both others, with one sample and with all."""
    pairs = product((1, _most(curves)), OTHERS)
    return all_hold(results.shown(benchmark), (_ahead(results, curves, k, "ar", other) for k, other in pairs))


def _nearly_everywhere(results: Results, own: dict[str, Curves]) -> Claim:
    """Judge that it is above the weaker of the two others; with three or more benchmarks, one may be an exception."""
    text = "Low-confidence is best or second at pass@1 nearly everywhere (paper: best in {best-at-1} and second in "
    text = (text + "{second-at-1} of {settings})").format(**paper("pass-at-k"))
    places = [_best_first(curves, 1, curves).index("low-confidence") for curves in own.values()]
    each = [
        _ahead(results, curves, 1, "low-confidence", _best_first(curves, 1, RIVALS)[-1], results.shown(name), chosen=2)
        for name, curves in own.items()
    ]
    outcomes, enough = [claim.outcome for claim in each], len(each) - (len(each) > 2)
    outcome = decide(outcomes.count("holds") >= enough, len(each) - outcomes.count("does not hold") < enough)
    counts = f"best in {places.count(0)}, second in {places.count(1)} of {len(places)}"
    return Claim(text, outcome, "; ".join([counts, *(f"{claim.text}: {claim.figures}" for claim in each)]))


def _claims(results: Results, benchmark: str, curves: Curves) -> list[Claim]:
    most, shown, figures = _most(curves), results.shown(benchmark), paper("pass-at-k")
    ends = ", ".join(f"{results.label(name)} {value}" for name, value in figures.get(benchmark, {}).items())
    published = f" (paper, {benchmark} at k={figures['most']}: {ends})" if ends else ""
    best, overtaken = f"{shown}: low-confidence has the best pass@1", f"{shown}: it is overtaken as k grows{published}"
    last = _best_first(curves, most, RIVALS)[0]
    return [
        all_hold(best, (_ahead(results, curves, 1, "low-confidence", rival) for rival in RIVALS)),
        _ahead(results, curves, most, last, "low-confidence", overtaken, chosen=len(RIVALS)),
    ]


def _most(curves: Curves) -> int:
    return min(max(curve) for curve in curves.values())


def _best_first(curves: Curves, k: int, methods: Iterable[str]) -> list[str]:
    return sorted(methods, key=lambda name: estimate(curves[name][k]).value or 0.0, reverse=True)


def _ahead(results: Results, curves: Curves, k: int, after: str, before: str, text: str = "", chosen: int = 1) -> Claim:
    """Judge that `after` is above `before`, where one of them was chosen as the best of `chosen`, which corrects p."""
    names = f"{results.label(after)} minus {results.label(before)} at k={k}"
    difference = paired(curves[before][k], curves[after][k])
    return judge(text, names, difference and replace(difference, p=min(1.0, chosen * difference.p)))


EXPERIMENT = Experiment("pass-at-k", "Figure 2", __doc__, parts, findings)
