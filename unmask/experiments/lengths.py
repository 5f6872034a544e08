"""The methods of Table 1 at every length of one benchmark: MATH500 (Figure 1(d)) and Sudoku (Table S3)."""

from dataclasses import replace

from unmask.experiments.experiment import Claim, Experiment, Findings, all_hold, beyond, decide, judge, paired
from unmask.experiments.results import Results
from unmask.experiments.setup import TEN, Part, Setup, pick, table_parts
from unmask.experiments.tables import benchmark_table, length_plot, paired_picture, paired_table, published_columns
from unmask.report.statistics import FEWEST
from unmask.report.tables import percent

MATH, SUDOKU = "MATH500", "Sudoku"
IS_ABOVE = "Is Order-Token Search above low-confidence and random remasking at every answer length?"
BEATS_CHANCE = "Does any decoder fill the cells of a Sudoku better than chance?"
CHANCE = 0.25  # of a cell filled at random with one of four digits


def math_parts(setup: Setup) -> list[Part]:
    setup = replace(setup, tabled=setup.axis, limit=setup.few)
    return table_parts(setup, [MATH], pick(setup, "low-confidence", "random", "ots"))


def math_findings(results: Results) -> Findings:
    published = published_columns("table-1", results.setup.model, MATH)
    claims = [_at_every_length(results, rival) for rival in ("low-confidence", "random")]
    return Findings([benchmark_table(results, MATH, published=published)], claims, [length_plot(results, MATH)])


def _at_every_length(results: Results, rival: str) -> Claim:
    ots, other = (results.by_length(MATH, name) for name in ("ots", rival))
    claims = [
        judge(f"L={length}", "", paired(other[length].right, ots[length].right)) for length in ots if length in other
    ]
    return all_hold(f"OTS is above {results.label(rival)} at every length", claims)


def sudoku_parts(setup: Setup) -> list[Part]:
    return table_parts(setup, [SUDOKU], pick(setup, *(name for name in TEN if name != "random")))


def sudoku_findings(results: Results) -> Findings:
    published = published_columns("sudoku", results.setup.model, SUDOKU)
    tables = [
        benchmark_table(results, SUDOKU, "score", published=published),
        paired_table(results, "ots", "score"),
        benchmark_table(results, SUDOKU),
        paired_table(results, "ots"),
    ]
    claims = [_above_chance(results)]
    if len(results.groups[SUDOKU].lengths) == 1:
        return Findings(tables, claims, pictures=paired_picture(results, "ots", "score"))
    axis = "blank cells right, %  (± standard error)"
    return Findings(tables, claims, [length_plot(results, SUDOKU, "score", y=axis, level=("chance", CHANCE))])


def _above_chance(results: Results) -> Claim:
    text = "No decoder fills cells better than chance (25 %)"
    shares = {method.label: results.accuracy(SUDOKU, method.name, "score") for method in results.methods}
    known = {label: share for label, share in shares.items() if share.value is not None and share.n >= FEWEST}
    if not known:
        return Claim(text, "not decided", f"fewer than {FEWEST} problems")
    outcomes = [beyond(share, CHANCE) for share in known.values()]
    best = max(known, key=lambda label: known[label].value or 0.0)
    figures = f"the best is {best} with {percent(known[best]).text} %; {outcomes.count('holds')} of {len(known)} are "
    figures += "significantly above chance"
    return Claim(text, decide(set(outcomes) == {"does not hold"}, "holds" in outcomes), figures)


FIGURE_1D = Experiment("figure-1d", "Figure 1(d)", IS_ABOVE, math_parts, math_findings)
TABLE_S3 = Experiment("sudoku", "Table S3", BEATS_CHANCE, sudoku_parts, sudoku_findings)
