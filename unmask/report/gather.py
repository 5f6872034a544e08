"""Gather records into the rows of tables: for every decoder and length, what is known about each problem."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from operator import attrgetter
from statistics import fmean
from typing import Any, Literal, TypeVar

from unmask.errors import UnmaskError
from unmask.policies.choice import by_majority
from unmask.registry import Call, parse
from unmask.report.statistics import Estimate, across, estimate, pass_at_k
from unmask.runs.grid import CHECKED, decoder_label, meaning, spec_text, task_label
from unmask.runs.record import Cell, Record
from unmask.runs.store import Run

BLOCK = "block"  # the whole-number setting that is not swept for its cost


def rows(cells: Iterable[Cell]) -> dict[str, dict[int, Cell]]:
    """Return the rows of the table of one model and task: by label, the cell at each length.

    A spec has different steps at different lengths, so the cells of a label are matched by its meaning at each. A cell
    may be in two rows (block=16 is the default at length 16); a row that is contained in a longer one is left out.
    """
    by_meaning = {(cell.length, cell.decoder): cell for cell in cells}
    by_label: dict[str, dict[int, Cell]] = {}
    for length, full in by_meaning:
        label = decoder_label(full, length)
        by_label[label] = cells_of(label, by_meaning)
    ranked = sorted(by_label, key=lambda label: (-len(by_label[label]), len(label), label))
    kept: list[str] = []
    for label in ranked:
        if not any(by_label[label].items() <= by_label[other].items() for other in kept):
            kept.append(label)
    return {label: by_label[label] for label in sorted(kept)}


def cells_of(spec: str, by_meaning: dict[tuple[int, str], Cell]) -> dict[int, Cell]:
    """Return the cells of one spec, by length."""
    lengths = sorted({length for length, _ in by_meaning})
    at = {length: by_meaning.get((length, meaning(spec, length) or spec)) for length in lengths}
    return {length: cell for length, cell in at.items() if cell is not None}


def family(label: str) -> str:
    """Return a label without its whole-number settings, apart from the block: a sweep over them varies the cost."""
    try:
        return spec_text(_without_numbers(parse(label)))
    except UnmaskError:
        return label


def _without_numbers(call: Call) -> Call:
    kept = {
        key: _without_numbers(value)
        for key, value in call.settings.items()
        if key == BLOCK or not value.name.isdecimal()
    }
    return Call(call.name, kept)


def visible(text: str) -> str:
    """Replace control characters and characters that cannot be encoded, since names come from files."""
    return "".join("□" if unicodedata.category(char) in ("Cc", "Cf", "Cs") else char for char in text)


Quantity = Literal["right", "score"]  # whole answers, or parts of answers where a task counts those
Item = TypeVar("Item")
COSTS = ("forward_passes", "computed", "positions", "checks")


@dataclass(frozen=True)
class Result:
    """The figures of one cell. A failure counts as wrong; an answer that was never graded does not count."""

    right: Mapping[str, float]  # by problem, the share of its draws that are right
    score: Mapping[str, float]  # by problem, its mean score, which counts parts where the task does
    cost: Mapping[str, float]  # by unit of `COSTS`, the mean over problems
    draws: int  # number of records, or of votes
    failed: int  # records with an error instead of an answer

    @cached_property
    def accuracy(self) -> Estimate:
        return estimate(self.right)

    def estimate(self, quantity: Quantity) -> Estimate:
        return self.accuracy if quantity == "right" else estimate(self.score)


@dataclass(frozen=True)
class Series:
    """One decoder with one model and task, at several lengths."""

    label: str
    records: Mapping[int, Sequence[Record]]  # by length
    samples: int = 1  # if more than one, each answer is the majority of this many stored samples
    name: str = ""  # name of an experiment's method

    @cached_property
    def results(self) -> dict[int, Result]:
        summarize = result_of if self.samples == 1 else result_of_votes
        return {length: summarize(records) for length, records in self.records.items()}

    @cached_property
    def cells(self) -> dict[int, Cell]:
        return {length: records[0].cell for length, records in self.records.items()}

    def average(self, lengths: Iterable[int], quantity: Quantity = "right") -> Estimate:
        """Return the average over lengths; it has no value if one of them is missing."""
        return across(self._values(lengths, quantity))

    def by_problem(self, lengths: Iterable[int], quantity: Quantity = "right") -> dict[str, float]:
        """Return the mean of each problem over lengths; it is empty if one of them is missing."""
        return mean_by_problem(self._values(lengths, quantity))

    def mean_cost(self) -> float:
        return fmean(result.cost["forward_passes"] for result in self.results.values())

    def _values(self, lengths: Iterable[int], quantity: Quantity) -> list[Mapping[str, float]]:
        whole = self.records.keys() >= set(lengths)
        return [getattr(self.results[length], quantity) for length in lengths] if whole else []


@dataclass(frozen=True)
class Group:
    """One model on one task, which makes a table."""

    model: str
    task: str
    lengths: list[int]
    series: list[Series]  # in the table's order

    @property
    def name(self) -> str:
        return task_label(self.task)

    @cached_property
    def records(self) -> dict[Cell, Sequence[Record]]:
        cells = {series.cells[length]: records for series in self.series for length, records in series.records.items()}
        return dict(sorted(cells.items()))

    @property
    def counts_parts(self) -> bool:
        """Return whether some score is neither 0 nor 1, or differs from the verdict."""
        return any(result.score != result.right for series in self.series for result in series.results.values())


def gather(runs: Iterable[Run]) -> list[Group]:
    """Group all records of some runs by model and task; the order does not depend on that of the runs."""
    groups = grouped(_distinct_records(runs), attrgetter("model", "task"))
    return [
        _group(model, task, grouped(records, attrgetter("cell"))) for (model, task), records in sorted(groups.items())
    ]


def grouped(items: Iterable[Item], key: Callable[[Item], Any]) -> dict[Any, list[Item]]:
    """Group items by a key; groups and their members keep the order of the items."""
    groups: dict[Any, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _group(model: str, task: str, records: Mapping[Cell, list[Record]]) -> Group:
    series = []
    for label, cells in rows(records).items():
        by_length = {length: records[cell] for length, cell in cells.items()}
        series.append(Series(label, by_length))
        samples = {length: len({record.sample for record in drawn}) for length, drawn in by_length.items()}
        for n in sorted({count for count in samples.values() if count > 1}):
            polled = {length: drawn for length, drawn in by_length.items() if samples[length] == n}
            series.append(Series(f"majority of {n} × {label}", polled, n))
    series.sort(key=lambda each: (each.mean_cost(), each.label))
    return Group(model, task, sorted({cell.length for cell in records}), series)


def result_of(records: Sequence[Record]) -> Result:
    """Summarize the records of one cell."""
    graded = _graded(records)
    right, score = _problem_means(graded, _is_right), _problem_means(graded, _score)
    failed = sum(record.error is not None for record in records)
    return Result(right, score, _mean_costs(records, 1.0), len(records), failed)


def result_of_votes(records: Sequence[Record]) -> Result:
    """Summarize the majority votes over the samples of each seed, as `vote(n, …)` would; failures have no vote."""
    polls = grouped(records, attrgetter("problem", "seed"))
    elected = [_elected(sorted(poll, key=attrgetter("sample"))) for poll in polls.values()]
    return replace(result_of(elected), cost=_mean_costs(records, len(records) / len(polls)))


def _elected(poll: Sequence[Record]) -> Record:
    able = [record for record in poll if record.error is None]
    if not able:
        return poll[0]
    keys = [record.text if record.key is None else record.key for record in able]
    return able[by_majority([0.0] * len(able), keys)]  # as in the `vote` decoder


def pass_curve(records: Sequence[Record]) -> dict[int, Estimate]:
    """Return pass@k for k = 1, 2, 4 … up to the number of draws that every problem has, over all seeds together."""
    return {k: estimate(values) for k, values in passes(records).items()}


def passes(records: Sequence[Record]) -> dict[int, dict[str, float]]:
    """Return by k and problem the probability that at least one of k of its draws is right."""
    draws = grouped(_graded(records), attrgetter("problem"))
    most = min(map(len, draws.values()), default=0)
    return {
        k: {problem: pass_at_k(len(drawn), sum(map(_is_right, drawn)), k) for problem, drawn in draws.items()}
        for k in sorted({2**i for i in range(most.bit_length())} | ({most} if most else set()))
    }


def mean_by_problem(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Average each problem over parts; problems that some part lacks are left out."""
    common = set(parts[0]).intersection(*parts[1:]) if parts else set()
    return {problem: sum(part[problem] for part in parts) / len(parts) for problem in common}


@cache
def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts gsm8k-9 before gsm8k-10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text))


def _graded(records: Iterable[Record]) -> list[Record]:
    return [record for record in records if record.error is not None or record.right is not None]


def _is_right(record: Record) -> bool:
    return record.error is None and bool(record.right)


def _score(record: Record) -> float:
    return float(_is_right(record)) if record.error is not None or record.score is None else float(record.score)


def _problem_means(records: Iterable[Record], value: Callable[[Record], float]) -> dict[str, float]:
    return {problem: fmean(map(value, drawn)) for problem, drawn in grouped(records, attrgetter("problem")).items()}


def _mean_costs(records: Sequence[Record], times: float) -> dict[str, float]:
    """Return the mean cost over problems, whose draws are averaged; failures have no known cost."""
    known = [record for record in records if record.error is None]
    means = {unit: _problem_means(known, attrgetter(f"cost.{unit}")) for unit in COSTS}
    return {unit: (estimate(values).value or 0.0) * times for unit, values in means.items()}


def _distinct_records(runs: Iterable[Run]) -> list[Record]:
    """Return every record once; raise an error if two runs contradict each other.

    Where some runs had a check and others had not, or a different one, the decoders of the former name it.
    """
    runs = list(runs)
    apart = len({run.check for run in runs}) > 1
    records: dict[tuple[object, ...], tuple[Record, Run]] = {}
    versions: dict[str, tuple[int, Run]] = {}
    for run in runs:
        for record in run.records:
            if apart and run.check:
                record = replace(record, decoder=f"{record.decoder}{CHECKED}{run.check}")
            version, first = versions.setdefault(record.task, (record.task_version, run))
            if version != record.task_version:
                raise UnmaskError(
                    f"task {task_label(record.task)!r} has version {version} in {str(first.folder)!r} and "
                    f"{record.task_version} in {str(run.folder)!r}: their grades do not compare, report them separately"
                )
            known, other = records.setdefault(record.name, (record, run))
            if known is not record and known.lasting() != record.lasting():
                raise UnmaskError(_contradiction(known, other, record, run))
    kept = [record for record, _ in records.values()]
    return sorted(kept, key=lambda record: (*record.cell, natural(record.problem), record.name))


def _contradiction(known: Record, other: Run, record: Record, run: Run) -> str:
    before, after = known.lasting(), record.lasting()
    field = next(key for key in before if before[key] != after[key])
    values = [json.dumps(each[field], ensure_ascii=False) for each in (before, after)]
    shown = ", ".join(value if len(value) <= 60 else value[:59] + "…" for value in values)
    return (
        f"{str(other.folder)!r} and {str(run.folder)!r} disagree on {field} of problem {record.problem!r} "
        f"({decoder_label(record.decoder, record.length)}, length {record.length}, seed {record.seed}, "
        f"sample {record.sample}): {shown}; report them separately"
    )
