"""Tables and figures of an experiment: our results beside the paper's own figures (arXiv 2601.20339)."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from unmask.experiments.results import Names, Results
from unmask.report.gather import Quantity
from unmask.report.plots import Plot, Point, forest, points_by_length
from unmask.report.statistics import Difference, Estimate, holm
from unmask.report.tables import MISSING, Published, Table, accuracy_table, averages_table, signed

PAPER = Path(__file__).with_name("paper")
MODELS = ("LLaDA-8B-Instruct", "LLaDA-1.5")
NAMES: dict[Quantity, str] = {"right": "accuracy", "score": "cell accuracy"}
Costs = Mapping[str, Callable[[str], str]]  # by the head of a column, the cost of a method
PAIRED = (
    "Paired by problem, the difference ± its standard error; p by the exact McNemar test or its sign-flip form, for "
    "the average by the normal distribution; corrected for the comparisons of its column (Holm)."
)


@cache
def paper(name: str, model: str | None = None) -> dict[str, Any]:
    """Return the figures of one table or section of the paper, or its rows for a model.

    Models that the paper does not have get the rows of its first one.
    """
    figures = json.loads(PAPER.joinpath(f"{name}.json").read_text("utf-8"))
    return figures if model is None else figures["models"][model_of(model) or MODELS[0]]


def model_of(name: str) -> str | None:
    """Return the paper's name of a model; None if the paper does not have it."""
    return next((model for model in MODELS if name.rstrip("/").endswith(model)), None)


def published_columns(name: str, model: str, benchmark: str) -> dict[str, dict[str, float]]:
    """Return the figures at each length and their average, by column and method."""
    rows, columns = paper(name, model).items(), [*paper(name)["lengths"], "average"]
    figures = {method: [*row["benchmarks"][benchmark], row["averages"][benchmark]] for method, row in rows}
    return {f"paper: {at}": {method: row[i] for method, row in figures.items()} for i, at in enumerate(columns)}


def benchmark_table(results: Results, benchmark: str, quantity: Quantity = "right", **more: Any) -> Table:
    """Return the accuracy at each length; `more` is as in `accuracy_table`."""
    title = f"{results.title(benchmark)} · {NAMES[quantity]}, %"
    return accuracy_table(title, results.groups[benchmark], first="method", quantity=quantity, **more)


def averages(results: Results, published: Published) -> Table:
    labels = [method.label for method in results.methods]
    groups = {results.shown(benchmark): group for benchmark, group in results.groups.items()}
    counts = {series.average(group.lengths).n for group in groups.values() for series in group.series} - {0}
    notes = ["Not all rows have the same problems: only the paired comparison is like for like."] * (len(counts) > 1)
    return averages_table("averages, accuracy, %", labels, groups, first="method", published=published, notes=notes)


def cost_table(results: Results, title: str, costs: Costs, methods: Names = None, notes: Sequence[str] = ()) -> Table:
    """Return the accuracy of methods on each benchmark, its average, and their costs."""
    names = [method.name for method in results.methods] if methods is None else methods
    body = [
        (results.label(each), *accuracies(results, each), *(cost(each) for cost in costs.values())) for each in names
    ]
    head = ("", *map(results.shown, results.benchmarks), "average", *costs)
    return Table.of("accuracy", title, head, body, notes, rank=False)


def paired_table(results: Results, after: str, quantity: Quantity = "right") -> Table:
    """Return a table of the differences between one method and every other."""
    rivals, columns = _rivals(results, after, quantity), _columns(results)
    chances = {column: corrected({label: row[column] for label, row, _ in rivals}) for column in columns}
    body = []
    for label, row, counts in rivals:
        cells = [f"{points(each)}, {chance(chances[at][label])}" if each else MISSING for at, each in row.items()]
        body.append((label, *cells, counts))
    title = f"{results.label(after)} minus each other method, points"
    return Table.of("paired", title, ("against", *columns, "n"), body, [PAIRED])


def corrected(differences: Mapping[str, Difference | None]) -> dict[str, float]:
    """Return the p of each difference, corrected for the number of comparisons (Holm)."""
    known = {name: each.p for name, each in differences.items() if each}
    return dict(zip(known, holm(list(known.values())), strict=True))


def paired_picture(results: Results, after: str, quantity: Quantity = "right") -> dict[str, Callable[[str], bytes]]:
    """Return the paired table as a figure, by the name of its file."""
    rows = {
        f"{label}, n={counts}": {column: each for column, each in row.items() if each}
        for label, row, counts in _rivals(results, after, quantity)
        if any(row.values())
    }
    title = f"{results.setup.model} · {results.label(after)} minus each other method"
    axis = f"points of {NAMES[quantity]}"
    return {results.experiment: lambda kind: forest(rows, kind, title, axis)} if rows else {}


def length_plot(results: Results, benchmark: str, quantity: Quantity = "right", **style: Any) -> Plot:
    series = results.groups[benchmark].series
    lines = tuple((each.label, points_by_length(each, quantity)) for each in series)
    return Plot(results.experiment, results.plot_title(benchmark), "length of the answer", lines, zero=True, **style)


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


def points(difference: Difference) -> str:
    return signed(difference.value) + ("" if difference.error is None else f" ± {100 * difference.error:.1f}")


def chance(p: float) -> str:
    """Format a p-value; digits below a millionth would be noise."""
    if p < 1e-6:
        return "p < 1e-06"
    return f"p = {p:.3f}" if p >= 0.001 else f"p = {p:.0e}"


def _columns(results: Results) -> dict[str, list[str]]:
    """Return the benchmarks of each column."""
    benchmarks = results.benchmarks
    columns = {results.shown(benchmark): [benchmark] for benchmark in benchmarks}
    return columns | ({"average": benchmarks} if len(benchmarks) > 1 else {})


def _rivals(results: Results, after: str, quantity: Quantity) -> list[tuple[str, dict[str, Difference | None], str]]:
    """Return for each other method its label, the difference by column and the number of problems."""
    rivals = []
    for method in (each for each in results.methods if each.name != after):
        row = {
            column: results.difference(after, method.name, benchmarks, quantity)
            for column, benchmarks in _columns(results).items()
        }
        counts = sorted({each.n for column, each in row.items() if each and column != "average"})
        rivals.append((method.label, row, "–".join(map(str, counts))))
    return rivals
