"""Does any decoder fill the cells of a Sudoku better than chance?"""

from __future__ import annotations

from unmask.experiments.cells import Part
from unmask.experiments.experiment import Experiment, Findings, Verdict
from unmask.experiments.found import Found
from unmask.experiments.methods import tabled, ten
from unmask.experiments.paper import MODELS, model_of, paper
from unmask.experiments.setting import Setting
from unmask.experiments.tables import cells, paired, picture
from unmask.report.plots import Plot, Point

BENCHMARK, SOURCE = "Sudoku", "Table S3"
CHANCE = 0.25  # of a cell filled blindly with one of four digits
SURE = 1.96  # standard errors
FEWEST = 30  # problems of which a standard error says something


def parts(setting: Setting) -> list[Part]:
    return tabled(setting, [BENCHMARK], [method for method in ten(setting) if method.name != "random"])


def findings(found: Found) -> Findings:
    said = paper("sudoku")
    rows = said["models"][model_of(found.setting.model) or MODELS[0]]
    beside = {name: (*row["benchmarks"][BENCHMARK], row["average"]) for name, row in rows.items()}
    names = [*map(str, said["lengths"]), "average"]
    tables = [
        cells(found, BENCHMARK, beside, names, "score"),
        paired(found, "ots", "score"),
        cells(found, BENCHMARK, {}, []),
        paired(found, "ots"),
    ]
    plots = [_plot(found)] if len(found.lengths(BENCHMARK)) > 1 else []
    return Findings(tables, [_verdict(found)], plots, picture(found, "ots", "score") if not plots else {})


def _plot(found: Found) -> Plot:
    lines = []
    for method in found.methods:
        results = found.results(BENCHMARK, method.name)
        lines.append((method.label, tuple(Point(float(at), one.parts) for at, one in results.items())))
    title = f"{found.setting.model} · {found.setting.tasks[BENCHMARK]}"
    axis, level = "blank cells right, %  (± standard error)", ("chance", CHANCE)
    return Plot("sudoku", title, "length of the answer", tuple(lines), y=axis, level=level, zero=True)


def _verdict(found: Found) -> Verdict:
    claim = "No decoder fills cells better than chance (25 %)"
    shares = {method.label: found.accuracy(BENCHMARK, method.name, "score") for method in found.methods}
    known = {label: one for label, one in shares.items() if one.value is not None and one.n >= FEWEST}
    if not known:
        return Verdict(claim, SOURCE, "not decided", f"fewer than {FEWEST} problems")
    above = {label: one for label, one in known.items() if (one.value or 0) - SURE * (one.error or 0) > CHANCE}
    near = any((one.value or 0) + SURE * (one.error or 0) > CHANCE for one in known.values())
    best = max(known, key=lambda label: known[label].value or 0)
    said = f"the best is {best} with {100 * (known[best].value or 0):.1f} ± {100 * (known[best].error or 0):.1f} %"
    said += f"; {len(above)} of {len(known)} are surely above"
    return Verdict(claim, SOURCE, "does not hold" if above else "not decided" if near else "holds", said)


EXPERIMENT = Experiment("sudoku", SOURCE, __doc__ or "", parts, findings)
