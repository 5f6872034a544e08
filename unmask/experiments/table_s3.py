"""Does any decoder fill the cells of a Sudoku better than chance?"""

from __future__ import annotations

from unmask.experiments.experiment import Claim, Experiment, Findings
from unmask.experiments.methods import Part, table_parts, ten
from unmask.experiments.results import Results
from unmask.experiments.setup import Setup
from unmask.experiments.tables import benchmark_table, length_plot, paired_picture, paired_table, published_columns
from unmask.report.statistics import FEWEST

BENCHMARK = "Sudoku"
CHANCE = 0.25  # of a cell filled at random with one of four digits
INTERVAL = 1.96  # standard errors


def parts(setup: Setup) -> list[Part]:
    return table_parts(setup, [BENCHMARK], [method for method in ten(setup) if method.name != "random"])


def findings(results: Results) -> Findings:
    published = published_columns("sudoku", results.setup.model, BENCHMARK)
    tables = [
        benchmark_table(results, BENCHMARK, published, "score"),
        paired_table(results, "ots", "score"),
        benchmark_table(results, BENCHMARK),
        paired_table(results, "ots"),
    ]
    claims = [_claim(results)]
    if len(results.groups[BENCHMARK].lengths) == 1:
        return Findings(tables, claims, pictures=paired_picture(results, "ots", "score"))
    axis = "blank cells right, %  (± standard error)"
    return Findings(tables, claims, [length_plot(results, BENCHMARK, "score", y=axis, level=("chance", CHANCE))])


def _claim(results: Results) -> Claim:
    text = "No decoder fills cells better than chance (25 %)"
    shares = {method.label: results.accuracy(BENCHMARK, method.name, "score") for method in results.methods}
    known = {
        label: (100 * share.value, 100 * (share.error or 0))
        for label, share in shares.items()
        if share.value is not None and share.n >= FEWEST
    }
    if not known:
        return Claim(text, "not decided", f"fewer than {FEWEST} problems")
    above = [label for label, (value, error) in known.items() if value - INTERVAL * error > 100 * CHANCE]
    near = any(value + INTERVAL * error > 100 * CHANCE for value, error in known.values())
    best = max(known, key=lambda label: known[label][0])
    value, error = known[best]
    figures = f"the best is {best} with {value:.1f} ± {error:.1f} %"
    figures += f"; {len(above)} of {len(known)} are significantly above chance"
    return Claim(text, "does not hold" if above else "not decided" if near else "holds", figures)


EXPERIMENT = Experiment("sudoku", "Table S3", __doc__, parts, findings)
