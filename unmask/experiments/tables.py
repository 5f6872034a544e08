"""Tables of an experiment: our figures beside the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from unmask.experiments.found import Found
from unmask.experiments.verdicts import chance
from unmask.report.forest import Mark, forest
from unmask.report.statistics import Estimate, joint
from unmask.report.tables import Entry, Table, entry, ranked, signed

PAIRED = (
    "Paired by problem, the difference ± its standard error; p by the exact McNemar test or its sign-flip form, for "
    "the average by the normal law; not corrected for the number of comparisons."
)
Beside = Mapping[str, Sequence[float]]  # by method, the paper's figures


def cells(
    found: Found,
    benchmark: str,
    published: Beside,
    names: Sequence[str],
    counted: str = "right",
    notes: Sequence[str] = (),
) -> Table:
    """One benchmark: a row a method, a column a length; then what a problem costs, and the paper's columns."""
    lengths = found.lengths(benchmark)
    many = len(lengths) > 1
    average = ["average"] if many else []
    head = ("method", *(f"L={length}" for length in lengths), *average, "rows", "n", *(f"paper: {n}" for n in names))
    body = []
    for method in found.methods:
        results = [found.result(benchmark, method.name, length) for length in lengths]
        if not any(results):
            continue
        figures = [entry(getattr(one, _SHOWN[counted]) if one else None) for one in results]
        figures += [entry(found.accuracy(benchmark, method.name, counted))] if many else []
        costs = " · ".join("–" if one is None else f"{one.cost['rows']:.0f}" for one in results)
        counts = sorted({len(one.right) for one in results if one is not None})
        theirs = published.get(method.name, ())
        beside = [Entry(f"{theirs[i]:.1f}" if i < len(theirs) else "–") for i in range(len(names))]
        body.append((Entry(method.label), *figures, Entry(costs), Entry("–".join(map(str, counts))), *beside))
    title = f"{benchmark} · {found.setting.tasks[benchmark]} · {_SAID[counted]}, %"
    return Table("accuracy", title, head, ranked(body, range(1, 1 + len(lengths) + many)), tuple(notes))


def averages(found: Found, published: Mapping[str, Mapping[str, float]], counted: str = "right") -> Table:
    """Each benchmark's average over lengths, their average, and the paper's averages by model."""
    benchmarks = found.benchmarks
    head = ("method", *map(found.shown, benchmarks), "average", *(f"paper: {model}" for model in published))
    body = []
    for method in found.methods:
        estimates = [found.accuracy(benchmark, method.name, counted) for benchmark in benchmarks]
        whole = found.average(method.name, counted)
        theirs = [published[model].get(method.name) for model in published]
        beside = [Entry("–" if value is None else f"{value:.1f}") for value in theirs]
        body.append((Entry(method.label), *map(entry, estimates), entry(whole), *beside))
    sizes = {found.accuracy(benchmark, method.name).n for method in found.methods for benchmark in benchmarks} - {0}
    notes = ("Not every row has the same problems: like for like is the paired comparison alone.",) * (len(sizes) > 1)
    title = f"averages, {_SAID[counted]}, %"
    return Table("average", title, head, ranked(body, range(1, len(benchmarks) + 2)), notes)


def paired(found: Found, after: str, counted: str = "right") -> Table:
    """One method against every other."""
    benchmarks = found.benchmarks
    body = []
    for method in found.methods:
        if method.name == after:
            continue
        pairs = [found.compare(benchmark, method.name, after, counted) for benchmark in benchmarks]
        known = [joint([pair]) if pair else None for pair in pairs]
        whole = joint([pair for pair in pairs if pair]) if all(pairs) else None
        figures = [*known, *([whole] if len(benchmarks) > 1 else [])]
        words = [_difference(one.difference, one.error, one.p) if one else "–" for one in figures]
        count = sorted({pair.n for pair in pairs if pair})
        body.append((Entry(method.label), *map(Entry, words), Entry("–".join(map(str, count)))))
    head = ("against", *map(found.shown, benchmarks), *(["average"] if len(benchmarks) > 1 else []), "n")
    return Table("paired", f"{found.label(after)} less each other method, points", head, tuple(body), (PAIRED,))


def picture(found: Found, after: str, counted: str = "right") -> dict[str, bytes]:
    """The paired table as a figure, by file name."""
    rivals = [method for method in found.methods if method.name != after]
    marks = []
    for method in rivals:
        pairs = {one: found.compare(one, method.name, after, counted) for one in found.benchmarks}
        known = {found.shown(one): joint([pair]) for one, pair in pairs.items() if pair}
        whole = {"average": joint([pair for pair in pairs.values() if pair])} if len(known) > 1 else {}
        for name, result in (known | whole).items():
            if result:
                marks.append(Mark(method.label, name, result.difference, result.error))
    title = f"{found.setting.model} · {found.label(after)} less each other method"
    axis = f"points of {_SAID[counted]}"
    return {f"{found.experiment}.{kind}": forest(marks, kind, title, axis) for kind in ("svg", "png")} if marks else {}


def rows_of(
    title: str, head: Sequence[str], body: Iterable[Sequence[str | Estimate | None]], rank: Sequence[int] = ()
) -> Table:
    """Any table: estimates are shown with their errors, words as they stand."""
    made = [tuple(Entry(one) if isinstance(one, str) else entry(one) for one in row) for row in body]
    return Table("accuracy", title, tuple(head), ranked(made, rank))


def _difference(value: float, error: float | None, p: float) -> str:
    within = "" if error is None else f" ± {100 * error:.1f}"
    return f"{signed(value)}{within}, {chance(p)}"


_SHOWN = {"right": "accuracy", "score": "parts"}
_SAID = {"right": "accuracy", "score": "cell accuracy"}
