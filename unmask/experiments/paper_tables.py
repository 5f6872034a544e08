"""Tables and figures of an experiment: our results beside the paper's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from unmask.experiments.experiment import chance, points
from unmask.experiments.results import Evidence
from unmask.report.gather import Quantity
from unmask.report.plots import Plot, forest, points_by_length
from unmask.report.statistics import Difference, holm
from unmask.report.tables import MISSING, Published, Table, accuracy_table, averages_table

NAMES: dict[Quantity, str] = {"right": "accuracy", "score": "cell accuracy"}
PAIRED = (
    "Paired by problem, the difference ± its standard error; p by the exact McNemar test or its sign-flip form, for "
    "the average by the normal distribution; corrected for the comparisons of its column (Holm)."
)


def benchmark_table(
    evidence: Evidence,
    benchmark: str,
    published: Published | None = None,
    quantity: Quantity = "right",
    notes: Sequence[str] = (),
) -> Table:
    title = f"{evidence.title(benchmark)} · {NAMES[quantity]}, %"
    group = evidence.groups[benchmark]
    return accuracy_table(title, group, first="method", quantity=quantity, published=published, notes=notes)


def averages(evidence: Evidence, published: Published) -> Table:
    labels = [method.label for method in evidence.methods]
    groups = {evidence.shown(benchmark): group for benchmark, group in evidence.groups.items()}
    counts = {series.average(group.lengths).n for group in groups.values() for series in group.series} - {0}
    notes = ["Not all rows have the same problems: only the paired comparison is like for like."] * (len(counts) > 1)
    return averages_table("averages, accuracy, %", labels, groups, first="method", published=published, notes=notes)


def paired_table(evidence: Evidence, after: str, quantity: Quantity = "right") -> Table:
    """One method against every other."""
    body, rivals = [], list(_rivals(evidence, after, quantity))
    corrected = _corrected({label: differences for label, differences, _ in rivals})
    for label, differences, counts in rivals:
        cells = [
            f"{points(each)}, {chance(corrected[column, label])}" if each else MISSING
            for column, each in differences.items()
        ]
        body.append((label, *cells, counts))
    head = ("against", *_columns(evidence), "n")
    return Table.of("paired", f"{evidence.label(after)} minus each other method, points", head, body, [PAIRED])


def _corrected(rivals: dict[str, dict[str, Difference | None]]) -> dict[tuple[str, str], float]:
    """By column and rival, p corrected for the comparisons of its column."""
    corrected: dict[tuple[str, str], float] = {}
    for column in next(iter(rivals.values()), {}):
        known = {label: each.p for label, row in rivals.items() if (each := row[column])}
        corrected |= zip([(column, label) for label in known], holm(list(known.values())), strict=True)
    return corrected


def paired_picture(evidence: Evidence, after: str, quantity: Quantity = "right") -> dict[str, Callable[[str], bytes]]:
    """The paired table as a figure."""
    rivals = {f"{label}, n={counts}": row for label, row, counts in _rivals(evidence, after, quantity)}
    rows = {label: {column: each for column, each in row.items() if each} for label, row in rivals.items()}
    rows = {label: row for label, row in rows.items() if row}
    title = f"{evidence.setup.model} · {evidence.label(after)} minus each other method"
    axis = f"points of {NAMES[quantity]}"
    return {evidence.experiment: lambda kind: forest(rows, kind, title, axis)} if rows else {}


def length_plot(evidence: Evidence, benchmark: str, quantity: Quantity = "right", **style: Any) -> Plot:
    series = evidence.groups[benchmark].series
    lines = tuple((each.label, points_by_length(each, quantity)) for each in series)
    title = f"{evidence.setup.model} · {evidence.setup.tasks[benchmark]}"
    return Plot(evidence.experiment, title, "length of the answer", lines, zero=True, **style)


def _columns(evidence: Evidence) -> dict[str, list[str]]:
    """By column, the benchmarks it covers."""
    benchmarks = evidence.benchmarks
    columns = {evidence.shown(benchmark): [benchmark] for benchmark in benchmarks}
    return columns | ({"average": benchmarks} if len(benchmarks) > 1 else {})


def _rivals(
    evidence: Evidence, after: str, quantity: Quantity
) -> Iterator[tuple[str, dict[str, Difference | None], str]]:
    """Of each other method: its label, the difference by column, and the number of problems."""
    for method in evidence.methods:
        if method.name != after:
            differences = {
                column: evidence.difference(after, method.name, benchmarks, quantity)
                for column, benchmarks in _columns(evidence).items()
            }
            counts = sorted({each.n for column, each in differences.items() if each and column != "average"})
            yield method.label, differences, "–".join(map(str, counts))
