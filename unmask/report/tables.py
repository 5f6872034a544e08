"""Tables as plain values, ready for any medium: the paper's shape, best in bold and second underlined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from unmask.report.compare import Pair, compare_rows
from unmask.report.results import Group, Row, pass_curve
from unmask.report.statistics import LEVEL, Estimate, together

Kind = Literal["accuracy", "parts", "average", "paired", "pass", "timing", "quality"]
BEST, SECOND = 1, 2


@dataclass(frozen=True)
class Entry:
    text: str
    rank: int = 0  # BEST, SECOND or neither
    value: float | None = field(default=None, repr=False)  # what ranks it


@dataclass(frozen=True)
class Table:
    kind: Kind
    title: str
    head: tuple[str, ...]  # the first column names the row
    rows: tuple[tuple[Entry, ...], ...]
    notes: tuple[str, ...] = ()


def tables(
    groups: Sequence[Group], pairs: Sequence[Pair], baseline: str | None, settings: str = "", timing: bool = False
) -> list[Table]:
    made = [table for group in groups for table in _of_group(group, pairs, baseline, settings)]
    made += [table for model in sorted({group.model for group in groups}) for table in _averages(groups, model)]
    if timing:
        made += [_timing(group) for group in groups]
    return made


def _of_group(group: Group, pairs: Sequence[Pair], baseline: str | None, settings: str) -> Iterable[Table]:
    yield _accuracy(group, settings)
    if group.counts_parts:
        yield _parts(group)
    mine = [pair for pair in pairs if pair.group is group]
    if mine and baseline is not None:
        yield _paired(group, mine, baseline)
    for length in group.lengths:
        yield from _pass(group, length)


def _accuracy(group: Group, settings: str) -> Table:
    many = len(group.lengths) > 1
    head = ("decoder", *(f"L={length}" for length in group.lengths), *(["average"] if many else []), "rows", "n")
    body = []
    for row in group.rows:
        figures = [entry(row.results[length].accuracy if length in row.results else None) for length in group.lengths]
        whole = set(row.results) == set(group.lengths)
        figures += [entry(row.accuracy if whole else None)] if many else []
        body.append((Entry(row.label), *figures, Entry(_prices(group, row)), Entry(_problems(row))))
    title = f"{group.model} · {group.name} · accuracy, %"
    return Table("accuracy", title, head, ranked(body, range(1, len(head) - 2)), tuple(_notes(group, settings)))


def _parts(group: Group) -> Table:
    head = ("decoder", *(f"L={length}" for length in group.lengths))
    body = [
        (
            Entry(row.label),
            *(entry(row.results[length].parts if length in row.results else None) for length in group.lengths),
        )
        for row in group.rows
    ]
    title = f"{group.model} · {group.name} · mean score (cell accuracy), %"
    return Table("parts", title, head, ranked(body, range(1, len(head))))


def _averages(groups: Sequence[Group], model: str) -> Iterable[Table]:
    """The paper's last columns: each task's average over lengths, and their average."""
    mine = [group for group in groups if group.model == model]
    if len(mine) < 2:
        return
    rows: dict[str, dict[str, Estimate]] = {}
    for group in mine:
        for row in group.rows:
            if set(row.results) == set(group.lengths):
                rows.setdefault(row.label, {})[group.task] = row.accuracy
    prices = {row.label: row.price() for group in mine for row in group.rows}
    body = []
    for label in sorted(rows, key=lambda label: (prices[label], label)):
        found = [rows[label].get(group.task) for group in mine]
        whole = [one for one in found if one is not None]
        average = together(whole) if len(whole) == len(mine) else None
        body.append((Entry(label), *map(entry, found), entry(average)))
    head = ("decoder", *(group.name for group in mine), "average")
    yield Table("average", f"{model} · averages over lengths, accuracy, %", head, ranked(body, range(1, len(head))))


def _paired(group: Group, pairs: Sequence[Pair], baseline: str) -> Table:
    head = ("decoder", "length", "n", "accuracy", "difference", f"{LEVEL:.0%} interval", "better", "worse", "p")
    body = []
    for pair in pairs:
        found = pair.found
        differs = found.better + found.worse > 0  # else an error of 0 would claim to know what n cannot show
        error = f" ± {100 * found.error:.1f}" if differs and found.error is not None else ""
        body.append(
            (
                Entry(pair.row.label),
                Entry("average" if pair.length is None else str(pair.length)),
                Entry(str(found.n)),
                Entry(f"{100 * found.before:.1f} → {100 * found.after:.1f}"),
                Entry(f"{signed(found.difference)}{error}"),
                Entry(f"{signed(found.low)} … {signed(found.high)}" if differs else "–"),
                Entry(str(found.better)),
                Entry(str(found.worse)),
                Entry(f"{found.p:.3f}" if found.p >= 0.001 else f"{found.p:.0e}"),
            )
        )
    notes = (
        "Paired on the same problems: interval by a bootstrap over problems, p by the exact McNemar test (its "
        "sign-flip form where problems have several draws), not corrected for the number of comparisons.",
    )
    if any(pair.found.better + pair.found.worse == 0 for pair in pairs):
        notes += ("Where no problem got better or worse, n problems cannot tell the two apart: that is not a proof.",)
    return Table("paired", f"{group.model} · {group.name} · against {baseline}", head, tuple(body), notes)


def _pass(group: Group, length: int) -> Iterable[Table]:
    curves = {row.label: pass_curve(group.records[row.cells[length]]) for row in group.rows if is_drawn(row, length)}
    curves = {label: curve for label, curve in curves.items() if max(curve, default=1) > 1}
    if not curves:
        return
    ks = sorted({k for curve in curves.values() for k in curve})
    body = [(Entry(label), *(entry(curve.get(k)) for k in ks)) for label, curve in curves.items()]
    head = ("decoder", *(f"k={k}" for k in ks))
    title = f"{group.model} · {group.name} · L={length} · pass@k, %"
    yield Table("pass", title, head, ranked(body, range(1, len(head))))


def is_drawn(row: Row, length: int) -> bool:
    """Whether its draws at this length are its own, not votes on another row's."""
    return row.samples == 1 and length in row.cells


def _timing(group: Group) -> Table:
    head = ("decoder", "length", "seconds", "calls", "peak MiB")
    body = []
    for row in group.rows:
        for length, cell in row.cells.items() if row.samples == 1 else ():
            known = [record.measured for record in group.records[cell] if record.error is None]
            if known:
                seconds = sum(one.seconds for one in known) / len(known)
                calls = sum(one.calls for one in known) / len(known)
                peak = max(one.memory for one in known) / 2**20
                words = (str(length), f"{seconds:.3f}", f"{calls:.0f}", f"{peak:.0f}" if peak else "–")
                body.append((Entry(row.label), *map(Entry, words)))
    notes = ("Measured, so another machine or batch gives other figures: seconds are a problem's share of its batch.",)
    return Table("timing", f"{group.model} · {group.name} · timing", head, tuple(body), notes)


def _notes(group: Group, settings: str) -> Iterable[str]:
    if settings:
        yield settings
    results = [result for row in group.rows for result in row.results.values()]
    failed = sum(result.failed for row in group.rows if row.samples == 1 for result in row.results.values())
    if failed:
        yield f"{failed} {'record' if failed == 1 else 'records'} failed: wrong in every figure."
    if len({frozenset(result.right) for result in results}) > 1:
        yield "Cells cover different problems: only the paired comparison is like for like."
    if any(row.samples > 1 for row in group.rows):
        yield "“majority of n” is the vote over a cell's stored samples."


def entry(found: Estimate | None) -> Entry:
    if found is None or found.value is None:
        return Entry("–")
    error = "" if found.error is None else f" ± {100 * found.error:.1f}"
    return Entry(f"{100 * found.value:.1f}{error}", value=found.value)


def _prices(group: Group, row: Row) -> str:
    rows = [row.results[length].cost["rows"] if length in row.results else None for length in group.lengths]
    return " · ".join("–" if value is None else f"{value:.0f}" for value in rows)


def _problems(row: Row) -> str:
    counts = sorted({len(result.right) for result in row.results.values()})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"


def ranked(body: Sequence[tuple[Entry, ...]], columns: Iterable[int]) -> tuple[tuple[Entry, ...], ...]:
    """The best of each column and what comes next; equal figures share their rank, one alone has none."""
    rows = [list(entries) for entries in body]
    for column in columns:
        values = [entries[column].value for entries in rows]
        known = sorted({round(value, 9) for value in values if value is not None}, reverse=True)
        if len(known) < 2:
            continue
        for entries, value in zip(rows, values, strict=True):
            if value is not None and round(value, 9) in known[:2]:
                entries[column] = Entry(entries[column].text, known.index(round(value, 9)) + 1, value)
    return tuple(map(tuple, rows))


def signed(value: float) -> str:
    """In percent, with a sign; what rounds to nothing has none."""
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def pairs_of(groups: Sequence[Group], baseline: str | None) -> list[Pair]:
    return [] if baseline is None else [pair for group in groups for pair in compare_rows(group, baseline)]


def as_json(groups: Sequence[Group], pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """One object a cell, with everything the tables show."""
    compared = {(id(pair.group), id(pair.row), pair.length): pair for pair in pairs}
    return [
        _cell(group, row, length, compared.get((id(group), id(row), length)))
        for group in groups
        for row in group.rows
        for length in row.results
    ]


def _cell(group: Group, row: Row, length: int, pair: Pair | None) -> dict[str, Any]:
    result, cell = row.results[length], row.cells[length]
    curve = pass_curve(group.records[cell]) if row.samples == 1 else {}
    return {
        "model": group.model,
        "task": group.task,
        "task_version": group.version,
        "decoder": row.label,
        "spec": cell.decoder,
        "vote": row.samples if row.samples > 1 else None,
        "length": length,
        "problems": result.accuracy.n,
        "draws": result.draws,
        "failed": result.failed,
        "accuracy": result.accuracy.value,
        "error": result.accuracy.error,
        "score": result.parts.value,
        "score_error": result.parts.error,
        **result.cost,
        "pass": {str(k): one.value for k, one in curve.items()} if len(curve) > 1 else {},
        "against": pair and pair.json(),
    }
