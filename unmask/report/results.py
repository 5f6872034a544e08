"""Records gathered into results: what a table's cell knows of each problem."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from unmask.errors import UnmaskError
from unmask.report import labels
from unmask.report.statistics import Estimate, across, estimate, majority, pass_at_k
from unmask.runs.record import Cell, Record
from unmask.runs.store import Run


@dataclass(frozen=True)
class Result:
    """One row's figures at one length; a failure counts as wrong, what was never graded does not count."""

    right: Mapping[str, float]  # by problem: the share of its draws that are right
    score: Mapping[str, float]  # by problem: its mean score, which counts parts where the task does
    cost: Mapping[str, float]  # rows, distinct, positions: the mean over problems
    draws: int  # records, or votes
    failed: int  # records that hold an error instead of an answer

    @cached_property
    def accuracy(self) -> Estimate:
        return estimate(self.right)

    @cached_property
    def parts(self) -> Estimate:
        return estimate(self.score)


@dataclass(frozen=True)
class Row:
    """One decoder under one model and task."""

    label: str
    results: Mapping[int, Result]  # by length
    cells: Mapping[int, Cell]
    samples: int  # of which each answer is the vote; 1 where nothing was voted on

    @cached_property
    def accuracy(self) -> Estimate:
        """Over all its lengths."""
        return across([result.right for result in self.results.values()])

    def price(self) -> float:
        rows = [result.cost["rows"] for result in self.results.values()]
        return math.fsum(rows) / len(rows)


@dataclass(frozen=True)
class Group:
    """One model on one task: a table."""

    model: str
    task: str  # full
    version: int
    lengths: list[int]
    rows: list[Row]  # cheapest first
    records: Mapping[Cell, list[Record]]  # in order of problem, seed and sample

    @property
    def name(self) -> str:
        return labels.task_label(self.task)

    @cached_property
    def counts_parts(self) -> bool:
        """Whether scores say more than right and wrong."""
        return any(result.score != result.right for row in self.rows for result in row.results.values())


def gather(runs: Iterable[Run]) -> list[Group]:
    """All records of some runs, in an order that does not depend on theirs."""
    gathered = _apart(runs)
    cells: dict[tuple[str, str], dict[Cell, list[Record]]] = {}
    for record in gathered:
        cells.setdefault((record.model, record.task), {}).setdefault(record.cell, []).append(record)
    return [_group(model, task, found) for (model, task), found in sorted(cells.items())]


def _group(model: str, task: str, found: dict[Cell, list[Record]]) -> Group:
    rows = []
    for label, cells in labels.rows(found).items():
        single = {length: result_of(found[cell]) for length, cell in cells.items()}
        rows.append(Row(label, single, cells, 1))
        samples = {length: len({record.sample for record in found[cell]}) for length, cell in cells.items()}
        for n in sorted({count for count in samples.values() if count > 1}):
            at = {length: cell for length, cell in cells.items() if samples[length] == n}
            voted = {length: result_of_votes(found[cell]) for length, cell in at.items()}
            rows.append(Row(f"majority of {n} × {label}", voted, at, n))
    rows.sort(key=lambda row: (row.price(), row.label))
    version = next(iter(found.values()))[0].task_version
    return Group(model, task, version, sorted({cell.length for cell in found}), rows, found)


def result_of(records: Sequence[Record]) -> Result:
    right: dict[str, list[float]] = {}
    score: dict[str, list[float]] = {}
    for record in records:
        if record.error is not None or record.right is not None:
            right.setdefault(record.problem, []).append(float(record.error is None and bool(record.right)))
            score.setdefault(record.problem, []).append(_score(record))
    failed = sum(record.error is not None for record in records)
    return Result(_means(right), _means(score), _cost(records, 1.0), len(records), failed)


def result_of_votes(records: Sequence[Record]) -> Result:
    """Each seed's samples of a problem vote, as `vote(n, …)` under that seed would; failures have no vote."""
    polls: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        polls.setdefault((record.problem, record.seed), []).append(record)
    chosen = [_elected(sorted(poll, key=lambda record: record.sample)) for poll in polls.values()]
    voted = result_of(chosen)
    return Result(voted.right, voted.score, _cost(records, len(records) / len(polls)), len(polls), voted.failed)


def _elected(poll: Sequence[Record]) -> Record:
    able = [record for record in poll if record.error is None]
    if not able:
        return poll[0]
    return able[majority([record.text if record.key is None else record.key for record in able])]


def pass_curve(records: Sequence[Record]) -> dict[int, Estimate]:
    """pass@k for k = 1, 2, 4 … and all draws that every problem has; draws of all seeds together."""
    return {k: estimate(values) for k, values in passes(records).items()}


def passes(records: Sequence[Record]) -> dict[int, dict[str, float]]:
    """By k and problem, the chance that k of its draws hold a right one."""
    draws: dict[str, list[bool]] = {}
    for record in records:
        if record.error is not None or record.right is not None:
            draws.setdefault(record.problem, []).append(record.error is None and bool(record.right))
    most = min(map(len, draws.values()), default=0)
    return {
        k: {problem: pass_at_k(len(drawn), sum(drawn), k) for problem, drawn in draws.items()}
        for k in sorted({2**i for i in range(most.bit_length())} | ({most} if most else set()))
    }


@cache
def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Sorts gsm8k-9 before gsm8k-10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text))


def _score(record: Record) -> float:
    if record.error is not None:
        return 0.0
    return float(record.score) if record.score is not None else float(bool(record.right))


def _means(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {problem: math.fsum(some) / len(some) for problem, some in values.items()}


def _cost(records: Sequence[Record], times: float) -> dict[str, float]:
    """The mean over problems, a problem's draws averaged; failures cost nothing that was counted."""
    known = [record for record in records if record.error is None]
    found = {}
    for what in ("rows", "distinct", "positions"):
        by_problem: dict[str, list[float]] = {}
        for record in known:
            by_problem.setdefault(record.problem, []).append(float(getattr(record.cost, what)))
        found[what] = (estimate(_means(by_problem)).value or 0.0) * times
    return found


def _apart(runs: Iterable[Run]) -> list[Record]:
    """Every record once; runs that contradict one another are refused."""
    found: dict[tuple[object, ...], tuple[Record, Run]] = {}
    versions: dict[str, tuple[int, Run]] = {}
    for run in runs:
        for record in run.records:
            version, first = versions.setdefault(record.task, (record.task_version, run))
            if version != record.task_version:
                raise UnmaskError(
                    f"task {labels.task_label(record.task)!r} has version {version} in {str(first.folder)!r} and "
                    f"{record.task_version} in {str(run.folder)!r}: their grades do not compare, report them apart"
                )
            known, other = found.setdefault(record.name, (record, run))
            if known is not record and known.lasting() != record.lasting():
                raise UnmaskError(_contradiction(known, other, record, run))
    ordered = sorted(found.values(), key=lambda one: (*one[0].cell, natural(one[0].problem), one[0].name))
    return [record for record, _ in ordered]


def _contradiction(known: Record, other: Run, record: Record, run: Run) -> str:
    before, after = known.lasting(), record.lasting()
    field = next(key for key in before if before[key] != after[key])
    said = [json.dumps(value[field], ensure_ascii=False) for value in (before, after)]
    shown = ", ".join(word if len(word) <= 60 else word[:59] + "…" for word in said)
    return (
        f"{str(other.folder)!r} and {str(run.folder)!r} disagree on {field} of problem {record.problem!r} "
        f"({labels.decoder_label(record.decoder, record.length)}, length {record.length}, seed {record.seed}, "
        f"sample {record.sample}): {shown}; report them apart"
    )
