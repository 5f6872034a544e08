"""Tables as plain values for any format: the paper's shape, the best figure in bold and the second underlined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from unmask.report.compare import Pair, corrected_chances
from unmask.report.gather import Group, Quantity, Result, Series, pass_curve
from unmask.report.statistics import LEVEL, Estimate, together
from unmask.runs.progress import wilson

Kind = Literal["accuracy", "parts", "average", "paired", "pass", "timing", "quality", "missing"]
Published = Mapping[str, Mapping[str, float]]  # by column, by method: the paper's figures
BEST, SECOND = 1, 2
MISSING = "–"


@dataclass(frozen=True)
class TableCell:
    text: str
    rank: int = 0  # BEST, SECOND or neither
    value: float | None = field(default=None, repr=False)  # what ranks it


@dataclass(frozen=True)
class Table:
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
        """Estimates are shown in percent with their errors, and ranked in columns whose rows have the same problems.

        Text is shown as it is.
        """
        rows = [[TableCell(each) if isinstance(each, str) else percent(each) for each in row] for row in body]
        for column in range(len(head)) if rank else ():
            if alike(column):
                _rank(rows, column)
        return cls(kind, title, tuple(head), tuple(map(tuple, rows)), tuple(notes))


def report_tables(
    groups: Sequence[Group], pairs: Sequence[Pair], baseline: str | None, settings: str = "", timing: bool = False
) -> list[Table]:
    tables = [table for group in groups for table in _group_tables(group, pairs, baseline, settings)]
    for model in sorted({group.model for group in groups}):
        tables += _model_averages([group for group in groups if group.model == model], baseline)
    return tables + [_timing(group) for group in groups if timing]


def _group_tables(group: Group, pairs: Sequence[Pair], baseline: str | None, settings: str) -> Iterable[Table]:
    title = f"{group.model} · {group.name}"
    yield accuracy_table(f"{title} · accuracy, %", group, notes=_notes(group, settings))
    if group.counts_parts:
        yield _parts(f"{title} · mean score (cell accuracy), %", group)
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
) -> Table:
    """A row per decoder and a column per length, then the cost per problem and the paper's figures."""
    published = published or {}
    average = ["average"] if len(group.lengths) > 1 else []
    head = (first, *(f"L={length}" for length in group.lengths), *average, "forward passes", "n", *published)
    body = []
    for series in group.series:
        results = [series.results.get(length) for length in group.lengths]
        estimates = [result and result.estimate(quantity) for result in results]
        if average:
            estimates.append(series.average(group.lengths, quantity))
        body.append((series.label, *estimates, _rows(results), _problems(series), *_beside(series.name, published)))
    return Table.of("accuracy", title, head, body, notes, alike=lambda column: _alike(group, column - 1))


def _alike(group: Group, place: int) -> bool:
    """Whether all rows have the same problems at the length in this place; after the last, at every length."""
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
    """The paper's last columns: each task's average over lengths, and their average."""
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


def _model_averages(groups: Sequence[Group], baseline: str | None) -> Iterable[Table]:
    if len(groups) > 1:
        costs = {series.label: series.mean_cost() for group in groups for series in group.series}
        labels = sorted(costs, key=lambda label: (label != baseline, costs[label], label))
        title = f"{groups[0].model} · averages over lengths, accuracy, %"
        yield averages_table(title, labels, {group.name: group for group in groups})


def _parts(title: str, group: Group) -> Table:
    head = ("decoder", *(f"L={length}" for length in group.lengths))
    body = [
        (series.label, *(result and result.estimate("score") for result in map(series.results.get, group.lengths)))
        for series in group.series
    ]
    return Table.of("parts", title, head, body, alike=lambda column: _alike(group, column - 1))


def _paired(title: str, pairs: Sequence[Pair]) -> Table:
    head = ("decoder", "length", "n", "accuracy", "difference", f"{LEVEL:.0%} interval", "better", "worse", "p")
    body = []
    for pair, p in zip(pairs, corrected_chances(pairs), strict=True):
        result = pair.comparison
        differs = result.better + result.worse > 0  # an error of 0 would claim more than n problems can show
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
                f"{p:.3f}" if p >= 0.001 else f"{p:.0e}",
            )
        )
    notes = [
        "Paired on the same problems: interval by a bootstrap over problems, p by the exact McNemar test (its "
        "sign-flip form where problems have several draws)"
        + (f", corrected for {len(pairs)} comparisons (Holm)." if len(pairs) > 1 else ".")
    ]
    if any(pair.comparison.better + pair.comparison.worse == 0 for pair in pairs):
        notes.append("Where no problem got better or worse, n problems cannot tell the two apart: this is not a proof.")
    return Table.of("paired", title, head, body, notes)


def pass_curves(group: Group, length: int) -> dict[str, dict[int, Estimate]]:
    """By label, where the draws at this length are more than one per problem and not votes on another decoder's."""
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
    note = "Measured, so another machine or batch gives other figures: seconds are a problem's share of its batch."
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
    """The standard error; where every problem agrees it would be 0, so there Wilson's interval."""
    if estimate.error:
        return f" ± {100 * estimate.error:.1f}"
    if not 0 <= (estimate.value or 0.0) <= 1:
        return ""
    low, high = wilson(estimate.value or 0.0, estimate.n)
    return f" ({100 * low:.0f}–{100 * high:.0f})"


def _rows(results: Sequence[Result | None]) -> str:
    return " · ".join(MISSING if result is None else f"{result.cost['forward_passes']:.0f}" for result in results)


def _problems(series: Series) -> str:
    counts = sorted({len(result.right) for result in series.results.values()})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"


def _beside(name: str, published: Published) -> list[str]:
    return [f"{column[name]:.1f}" if name in column else MISSING for column in published.values()]


def _rank(rows: Sequence[list[TableCell]], column: int) -> None:
    """Mark the best of a column and the second; equal figures share their rank, and a lone figure has none."""
    values = [row[column].value for row in rows]
    known = sorted({round(value, 9) for value in values if value is not None}, reverse=True)
    for row, value in zip(rows, values, strict=True):
        if len(known) > 1 and value is not None and round(value, 9) in known[:2]:
            row[column] = replace(row[column], rank=known.index(round(value, 9)) + 1)


def signed(value: float) -> str:
    """In percent with its sign; a value that rounds to zero has none."""
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")
