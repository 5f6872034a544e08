"""Tables and figures of an experiment: our results beside the paper's own figures (arXiv 2601.20339)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from unmask.experiments.experiment import chance, points
from unmask.experiments.results import Results
from unmask.report.gather import Quantity
from unmask.report.plots import Plot, Point, forest, points_by_length
from unmask.report.statistics import Difference, Estimate, holm
from unmask.report.tables import MISSING, Published, Table, accuracy_table, averages_table

PAPER = Path(__file__).with_name("paper")
MODELS = ("LLaDA-8B-Instruct", "LLaDA-1.5")
NAMES: dict[Quantity, str] = {"right": "accuracy", "score": "cell accuracy"}
PAIRED = (
    "Paired by problem, the difference ± its standard error; p by the exact McNemar test or its sign-flip form, for "
    "the average by the normal distribution; corrected for the comparisons of its column (Holm)."
)


@cache
def paper(name: str) -> dict[str, Any]:
    """Return the figures of one table or section of the paper."""
    return json.loads(PAPER.joinpath(f"{name}.json").read_text("utf-8"))


def model_of(name: str) -> str | None:
    """Return the paper's name of a model; None if the paper does not have it."""
    return next((model for model in MODELS if name.rstrip("/").endswith(model)), None)


def published_columns(name: str, model: str, benchmark: str) -> dict[str, dict[str, float]]:
    """Return the figures at each length and their average, by column and method.

    Models that the paper does not have get the figures of its first one.
    """
    table = paper(name)
    rows = table["models"][model_of(model) or MODELS[0]]
    figures = {method: [*row["benchmarks"][benchmark], row["averages"][benchmark]] for method, row in rows.items()}
    columns = [*table["lengths"], "average"]
    return {f"paper: {at}": {method: row[i] for method, row in figures.items()} for i, at in enumerate(columns)}


def benchmark_table(
    results: Results,
    benchmark: str,
    published: Published | None = None,
    quantity: Quantity = "right",
    notes: Sequence[str] = (),
) -> Table:
    title = f"{results.title(benchmark)} · {NAMES[quantity]}, %"
    group = results.groups[benchmark]
    return accuracy_table(title, group, first="method", quantity=quantity, published=published, notes=notes)


def averages(results: Results, published: Published) -> Table:
    labels = [method.label for method in results.methods]
    groups = {results.shown(benchmark): group for benchmark, group in results.groups.items()}
    counts = {series.average(group.lengths).n for group in groups.values() for series in group.series} - {0}
    notes = ["Not all rows have the same problems: only the paired comparison is like for like."] * (len(counts) > 1)
    return averages_table("averages, accuracy, %", labels, groups, first="method", published=published, notes=notes)


def paired_table(results: Results, after: str, quantity: Quantity = "right") -> Table:
    """Return a table of the differences between one method and every other."""
    body, rivals = [], list(_rivals(results, after, quantity))
    corrected = _corrected({label: differences for label, differences, _ in rivals})
    for label, differences, counts in rivals:
        cells = [
            f"{points(each)}, {chance(corrected[column, label])}" if each else MISSING
            for column, each in differences.items()
        ]
        body.append((label, *cells, counts))
    head = ("against", *_columns(results), "n")
    return Table.of("paired", f"{results.label(after)} minus each other method, points", head, body, [PAIRED])


def _corrected(rivals: dict[str, dict[str, Difference | None]]) -> dict[tuple[str, str], float]:
    """Return p by column and rival, corrected for the comparisons of its column (Holm)."""
    corrected: dict[tuple[str, str], float] = {}
    for column in next(iter(rivals.values()), {}):
        known = {label: each.p for label, row in rivals.items() if (each := row[column])}
        corrected |= zip([(column, label) for label in known], holm(list(known.values())), strict=True)
    return corrected


def paired_picture(results: Results, after: str, quantity: Quantity = "right") -> dict[str, Callable[[str], bytes]]:
    """Return the paired table as a figure, by the name of its file."""
    rivals = {f"{label}, n={counts}": row for label, row, counts in _rivals(results, after, quantity)}
    rows = {label: {column: each for column, each in row.items() if each} for label, row in rivals.items()}
    rows = {label: row for label, row in rows.items() if row}
    title = f"{results.setup.model} · {results.label(after)} minus each other method"
    axis = f"points of {NAMES[quantity]}"
    return {results.experiment: lambda kind: forest(rows, kind, title, axis)} if rows else {}


def length_plot(results: Results, benchmark: str, quantity: Quantity = "right", **style: Any) -> Plot:
    series = results.groups[benchmark].series
    lines = tuple((each.label, points_by_length(each, quantity)) for each in series)
    title = f"{results.setup.model} · {results.setup.tasks[benchmark]}"
    return Plot(results.experiment, title, "length of the answer", lines, zero=True, **style)


def accuracies(results: Results, method: str) -> list[Estimate]:
    """Return a method's accuracy on each benchmark, then their average."""
    return [*(results.accuracy(benchmark, method) for benchmark in results.benchmarks), results.average(method)]


def average_plot(results: Results, name: str, axis: str, cells: Iterable[tuple[str, str, float]]) -> Plot:
    """Plot the average accuracy of methods against a cost, given as (label, method, cost).

    Methods of one label are joined by a line.
    """
    lines: dict[str, list[Point]] = {}
    for label, method, cost in cells:
        accuracy = results.average(method)
        if cost and accuracy.value is not None:
            lines.setdefault(label, []).append(Point(cost, accuracy))
    ordered = tuple((label, tuple(sorted(points, key=lambda point: point.x))) for label, points in lines.items())
    return Plot(name, f"{results.setup.model} · average over {len(results.benchmarks)} tasks", axis, ordered)


def _columns(results: Results) -> dict[str, list[str]]:
    """Return the benchmarks of each column."""
    benchmarks = results.benchmarks
    columns = {results.shown(benchmark): [benchmark] for benchmark in benchmarks}
    return columns | ({"average": benchmarks} if len(benchmarks) > 1 else {})


def _rivals(
    results: Results, after: str, quantity: Quantity
) -> Iterator[tuple[str, dict[str, Difference | None], str]]:
    """Yield for each other method its label, the difference by column and the number of problems."""
    for method in results.methods:
        if method.name != after:
            differences = {
                column: results.difference(after, method.name, benchmarks, quantity)
                for column, benchmarks in _columns(results).items()
            }
            counts = sorted({each.n for column, each in differences.items() if each and column != "average"})
            yield method.label, differences, "–".join(map(str, counts))
