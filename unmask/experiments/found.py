"""Records of an experiment, found by benchmark, method and length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from unmask.experiments.cells import TEN, Method, Part
from unmask.experiments.setting import PUBLISHED, Setting
from unmask.report.labels import meaning
from unmask.report.results import Result, result_of
from unmask.report.statistics import Comparison, Estimate, across, compare, together
from unmask.runs.record import Record
from unmask.runs.store import Run


@dataclass(frozen=True)
class Found:
    experiment: str
    setting: Setting
    parts: Sequence[Part]
    runs: Mapping[str, Run]  # by part, where there is one
    measured: Any = None  # what a measurement left

    @cached_property
    def _records(self) -> dict[tuple[str, str, int], list[Record]]:
        """By part, decoder and length, in order of seed, sample and problem."""
        found: dict[tuple[str, str, int], list[Record]] = {}
        for part, run in self.runs.items():
            for record in run.records:
                found.setdefault((part, record.decoder, record.length), []).append(record)
        return found

    def records(self, benchmark: str, method: str, length: int) -> list[Record]:
        """Of one cell, all its seeds and samples; empty where nothing is recorded."""
        for part in self.parts:
            for one in part.methods if part.benchmark == benchmark else ():
                if one.name == method and length in part.lengths:
                    return self._records.get((part.name, meaning(one.spec, length) or one.spec, length), [])
        return []

    @cached_property
    def _results(self) -> dict[tuple[str, str, int], Result | None]:
        return {}

    def result(self, benchmark: str, method: str, length: int) -> Result | None:
        where = (benchmark, method, length)
        if where not in self._results:
            found = self.records(*where)
            self._results[where] = result_of(found) if found else None
        return self._results[where]

    @property
    def benchmarks(self) -> list[str]:
        """That have records, in the experiment's order."""
        return _once(part.benchmark for part in self.parts if part.name in self.runs)

    def lengths(self, benchmark: str) -> list[int]:
        return sorted({length for part in self.parts if part.benchmark == benchmark for length in part.lengths})

    @property
    def methods(self) -> list[Method]:
        """That have records: the paper's rows in its order, others in the experiment's."""
        found = _once(method for part in self.parts if part.name in self.runs for method in part.methods)
        known = all(method.name in TEN for method in found)
        return sorted(found, key=lambda method: TEN.index(method.name)) if known else found

    def label(self, name: str) -> str:
        methods = (method for part in self.parts for method in part.methods)
        return next((method.label for method in methods if method.name == name), name)

    def shown(self, benchmark: str) -> str:
        """The benchmark's name, or that of the task that stands for it: a figure of one is none of the other."""
        task = self.setting.tasks.get(benchmark, benchmark)
        return benchmark if task == PUBLISHED.tasks.get(benchmark) else task

    def results(self, benchmark: str, method: str) -> dict[int, Result]:
        """By length; empty unless every length is there."""
        lengths = self.lengths(benchmark)
        found = {length: self.result(benchmark, method, length) for length in lengths}
        whole = {length: result for length, result in found.items() if result is not None}
        return whole if len(whole) == len(lengths) else {}

    def accuracy(self, benchmark: str, method: str, counted: str = "right") -> Estimate:
        """Over all lengths; `counted`: whole answers (right) or their parts (score)."""
        return across([getattr(result, counted) for result in self.results(benchmark, method).values()])

    def average(self, method: str, counted: str = "right") -> Estimate:
        """Over all benchmarks, each counting alike."""
        return together([self.accuracy(benchmark, method, counted) for benchmark in self.benchmarks])

    def compare(
        self, benchmark: str, before: str, after: str, counted: str = "right", length: int | None = None
    ) -> Comparison | None:
        """Paired by problem, at one length or with each problem's lengths averaged."""
        values = [self._by_problem(benchmark, method, counted, length) for method in (before, after)]
        return compare(*values) if all(values) else None

    def _by_problem(self, benchmark: str, method: str, counted: str, length: int | None) -> dict[str, float]:
        results = self.results(benchmark, method)
        return mean_of([getattr(one, counted) for at, one in results.items() if length in (None, at)])


def mean_of(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """By problem; problems that some part lacks are left out."""
    everywhere = set(parts[0]).intersection(*parts[1:]) if parts else set()
    return {problem: sum(part[problem] for part in parts) / len(parts) for problem in everywhere}


def _once(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))
