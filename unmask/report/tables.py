"""Tables as plain values, which `formats` and `html` write: accuracy, averages, paired comparisons, pass@k, timing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Literal

from unmask.errors import UnmaskError, nearest
from unmask.report.gather import Group, Quantity, Result, Series, cells_of, grouped, pass_curve
from unmask.report.statistics import LEVEL, Comparison, Estimate, compare, holm, together, wilson

Kind = Literal["accuracy", "parts", "average", "paired", "pass", "timing", "quality", "missing"]
Published = Mapping[str, Mapping[str, float]]  # by column and method, the paper's figures
BEST, SECOND = 1, 2
MISSING = "–"
BASELINE = "low-confidence"


@dataclass(frozen=True)
class TableCell:
    """A text, marked if it is the best or second best of its column."""

    text: str
    rank: int = 0  # BEST, SECOND or neither
    value: float | None = field(default=None, repr=False)  # the value that ranks it


@dataclass(frozen=True)
class Table:
    """Rows of texts with a title and notes."""

    kind: Kind
    title: str
    head: tuple[str, ...]  # the first column names the row
    rows: tuple[tuple[TableCell, ...], ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        kind: Kind,
        title: str,
        head: Sequence[str],
        body: Iterable[Iterable[str | Estimate | None]],
        notes: Iterable[str] = (),
        rank: bool = True,
        alike: Callable[[int], bool] = lambda column: True,
    ) -> Table:
        """Make a table of texts and estimates, which are shown in percent with their errors.

        Columns are ranked if `alike` says that all their rows have the same problems.
        """
        rows = [[TableCell(each) if isinstance(each, str) else percent(each) for each in row] for row in body]
        for column in range(len(head)) if rank else ():
            if alike(column):
                _rank(rows, column)
        return cls(kind, title, tuple(head), tuple(map(tuple, rows)), tuple(notes))


@dataclass(frozen=True)
class Pair:
    """The comparison of one decoder with the baseline."""

    group: Group
    series: Series
    length: int | None  # None: the average over the lengths that both have
    comparison: Comparison
    p: float  # corrected for all comparisons of the group (Holm)


def choose_baseline(groups: Sequence[Group], spec: str | None) -> str | None:
    """Return the label of the baseline: the decoder that the user named, or low-confidence if it was run."""
    for group in groups:
        if series := find_series(group, BASELINE if spec is None else spec):
            return series.label
    if spec is None:
        return None
    known = {series.label for group in groups for series in group.series}
    raise UnmaskError(f"these runs have no decoder {spec!r}: {nearest(spec, known)}")


def find_series(group: Group, spec: str) -> Series | None:
    """Find a decoder by its label or by its meaning, so that `ots` finds order-token-search."""
    for series in group.series:
        if series.label == spec:
            return series
    cells = cells_of(spec, {(cell.length, cell.decoder): cell for cell in group.records})
    for series in group.series:
        if series.samples == 1 and cells and series.cells == cells:
            return series
    return Series(spec, {length: group.records[cell] for length, cell in cells.items()}) if cells else None


def compare_with(group: Group, baseline: str | None) -> list[Pair]:
    """Compare every decoder with the baseline, at each length and on average."""
    before = baseline and find_series(group, baseline)
    if not before:
        return []
    found: list[tuple[Series, int | None, Comparison]] = []
    for series in group.series:
        common = [length for length in series.records if length in before.records]
        if series.samples == before.samples and all(series.cells[at] == before.cells[at] for at in common):
            continue
        for length in [*common, *([None] if len(common) > 1 else [])]:
            lengths = common if length is None else [length]
            comparison = compare(before.by_problem(lengths), series.by_problem(lengths))
            if comparison is not None:
                found.append((series, length, comparison))
    corrected = holm([comparison.p for *_, comparison in found])
    return [Pair(group, *each, p) for each, p in zip(found, corrected, strict=True)]


def report_tables(
    groups: Sequence[Group], pairs: Sequence[Pair], baseline: str | None, settings: str = "", timing: bool = False
) -> list[Table]:
    tables = [table for group in groups for table in _group_tables(group, pairs, baseline, settings)]
    for model, members in sorted(grouped(groups, attrgetter("model")).items()):
        if len(members) > 1:
            names = ordered_labels((series for group in members for series in group.series), baseline)
            title = f"{model} · averages over lengths, accuracy, %"
            tables.append(averages_table(title, names, {group.name: group for group in members}))
    return tables + [_timing(group) for group in groups if timing]


def _group_tables(group: Group, pairs: Sequence[Pair], baseline: str | None, settings: str) -> Iterable[Table]:
    title = f"{group.model} · {group.name}"
    yield accuracy_table(f"{title} · accuracy, %", group, notes=_notes(group, settings))
    if group.counts_parts:
        yield accuracy_table(f"{title} · mean score (cell accuracy), %", group, quantity="score", kind="parts")
    of_group = [pair for pair in pairs if pair.group is group]
    if of_group:
        yield _paired(f"{title} · against {baseline}", of_group)
    for length in group.lengths:
        curves = pass_curves(group, length)
        if curves:
            yield pass_table(f"{title} · L={length} · pass@k, %", "decoder", curves)


def accuracy_table(
    title: str,
    group: Group,
    *,
    first: str = "decoder",
    quantity: Quantity = "right",
    published: Published | None = None,
    notes: Iterable[str] = (),
    kind: Kind = "accuracy",
) -> Table:
    """Return a table with a row per decoder and a column per length, the cost per problem and the paper's figures."""
    published = published or {}
    average = ["average"] if len(group.lengths) > 1 else []
    head = (first, *(f"L={length}" for length in group.lengths), *average, "forward passes", "n", *published)
    body = []
    for series in group.series:
        results = [series.results.get(length) for length in group.lengths]
        estimates = [result and result.estimate(quantity) for result in results]
        if average:
            estimates.append(series.average(group.lengths, quantity))
        problems = count_range(len(result.right) for result in series.results.values())
        body.append((series.label, *estimates, _passes(results), problems, *_beside(series.name, published)))
    return Table.of(kind, title, head, body, notes, alike=lambda column: _alike(group, column - 1))


def _alike(group: Group, place: int) -> bool:
    """Return whether all rows have the same problems at one length, or at every length if there is no such column."""
    lengths = group.lengths[place : place + 1] if 0 <= place < len(group.lengths) else group.lengths
    return all(
        len({frozenset(series.results[length].right) for series in group.series if length in series.results}) < 2
        for length in lengths
    )


def averages_table(
    title: str,
    labels: Iterable[str],
    groups: Mapping[str, Group],
    *,
    first: str = "decoder",
    published: Published | None = None,
    notes: Iterable[str] = (),
) -> Table:
    """Return a table of each task's average over lengths, and of their average."""
    published = published or {}
    body = []
    for label in labels:
        known = [next((each for each in group.series if each.label == label), None) for group in groups.values()]
        estimates = [
            series.average(group.lengths) if series else Estimate(None, None, 0)
            for series, group in zip(known, groups.values(), strict=True)
        ]
        if any(each.value is not None for each in estimates):
            name = next(series.name for series in known if series)
            body.append((label, *estimates, together(estimates), *_beside(name, published)))
    names = list(groups)

    def alike(column: int) -> bool:
        chosen = [names[column - 1]] if 0 < column <= len(names) else names
        return all(_alike(groups[name], len(groups[name].lengths)) for name in chosen)

    return Table.of("average", title, (first, *groups, "average", *published), body, notes, alike=alike)


def ordered_labels(every: Iterable[Series], baseline: str | None) -> list[str]:
    """Return the labels of all decoders: the baseline first, then by cost."""
    costs = {series.label: series.mean_cost() for series in every}
    return sorted(costs, key=lambda label: (label != baseline, costs[label], label))


def _paired(title: str, pairs: Sequence[Pair]) -> Table:
    head = ("decoder", "length", "n", "accuracy", "difference", f"{LEVEL:.0%} interval", "better", "worse", "p")
    body = []
    for pair in pairs:
        result = pair.comparison
        differs = result.better + result.worse > 0  # otherwise an error of 0 would claim too much
        error = f" ± {100 * result.error:.1f}" if differs and result.error is not None else ""
        body.append(
            (
                pair.series.label,
                "average" if pair.length is None else str(pair.length),
                str(result.n),
                f"{100 * result.before:.1f} → {100 * result.after:.1f}",
                f"{signed(result.difference)}{error}",
                f"{signed(result.low)} … {signed(result.high)}" if differs else MISSING,
                str(result.better),
                str(result.worse),
                f"{pair.p:.3f}" if pair.p >= 0.001 else f"{pair.p:.0e}",
            )
        )
    notes = [
        "Paired on the same problems: interval by a bootstrap over problems, p by the exact McNemar test (its "
        "sign-flip form where problems have several draws)"
        + (f", corrected for {len(pairs)} comparisons (Holm)." if len(pairs) > 1 else ".")
    ]
    if any(pair.comparison.better + pair.comparison.worse == 0 for pair in pairs):
        notes.append("Where no problem got better or worse, n problems show no difference: this is not a proof.")
    return Table.of("paired", title, head, body, notes)


def pass_curves(group: Group, length: int) -> dict[str, dict[int, Estimate]]:
    """Return pass@k by label, for decoders with several draws per problem at this length."""
    own = {each.label: each.records[length] for each in group.series if each.samples == 1 and length in each.records}
    curves = {label: pass_curve(records) for label, records in own.items()}
    return {label: curve for label, curve in curves.items() if max(curve, default=1) > 1}


def pass_table(title: str, first: str, curves: Mapping[str, Mapping[int, Estimate]]) -> Table:
    ks = sorted({k for curve in curves.values() for k in curve})
    body = [(label, *(curve.get(k) for k in ks)) for label, curve in curves.items()]
    return Table.of("pass", title, (first, *(f"k={k}" for k in ks)), body)


def _timing(group: Group) -> Table:
    body = []
    for series in group.series:
        for length, records in series.records.items() if series.samples == 1 else ():
            known = [record.measured for record in records if record.error is None]
            if known:
                seconds = sum(each.seconds for each in known) / len(known)
                calls = sum(each.calls for each in known) / len(known)
                peak = max(each.memory for each in known) / 2**20
                figures = (f"{seconds:.3f}", f"{calls:.0f}", f"{peak:.0f}" if peak else MISSING)
                body.append((series.label, str(length), *figures))
    head = ("decoder", "length", "seconds", "calls", "peak MiB")
    note = (
        "Measured, so a different machine or batch gives different figures: seconds are a problem's share of its batch."
    )
    return Table.of("timing", f"{group.model} · {group.name} · timing", head, body, [note])


def _notes(group: Group, settings: str) -> Iterable[str]:
    if settings:
        yield settings
    results = [result for series in group.series for result in series.results.values()]
    failed = sum(record.error is not None for records in group.records.values() for record in records)
    if failed:
        yield f"{failed} {'record' if failed == 1 else 'records'} failed: wrong in every figure."
    if len({frozenset(result.right) for result in results}) > 1:
        yield "Cells cover different problems: only the paired comparison is like for like."
    if any(series.samples > 1 for series in group.series):
        yield "“majority of n” is the vote over a cell's stored samples."


def percent(estimate: Estimate | None) -> TableCell:
    if estimate is None or estimate.value is None:
        return TableCell(MISSING)
    return TableCell(f"{100 * estimate.value:.1f}{_uncertain(estimate)}", value=estimate.value)


def _uncertain(estimate: Estimate) -> str:
    """Return the standard error, or Wilson's interval where all problems agree and the error would be 0."""
    if estimate.error:
        return f" ± {100 * estimate.error:.1f}"
    if not 0 <= (estimate.value or 0.0) <= 1:
        return ""
    low, high = wilson(estimate.value or 0.0, estimate.n)
    return f" ({100 * low:.0f}–{100 * high:.0f})"


def _passes(results: Sequence[Result | None]) -> str:
    return " · ".join(MISSING if result is None else f"{result.cost['forward_passes']:.0f}" for result in results)


def count_range(counts: Iterable[int]) -> str:
    """Return the count, or the smallest and the largest where several differ."""
    known = sorted(set(counts))
    return str(known[0]) if len(known) == 1 else f"{known[0]}–{known[-1]}"


def _beside(name: str, published: Published) -> list[str]:
    return [f"{column[name]:.1f}" if name in column else MISSING for column in published.values()]


def _rank(rows: Sequence[list[TableCell]], column: int) -> None:
    """Mark the best and second best of a column; equal figures share a rank, and a single figure has none."""
    values = [row[column].value for row in rows]
    known = sorted({round(value, 9) for value in values if value is not None}, reverse=True)
    for row, value in zip(rows, values, strict=True):
        if len(known) > 1 and value is not None and round(value, 9) in known[:2]:
            row[column] = replace(row[column], rank=known.index(round(value, 9)) + 1)


def signed(value: float) -> str:
    """Format a share in percent with its sign; a value that rounds to zero has none."""
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")
