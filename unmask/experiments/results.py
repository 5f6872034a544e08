"""The results of an experiment: what was planned, everything that was recorded, and the files that hold both.

A folder holds `experiment.json`, a run for each part and `measured.json`. A packed file holds the same without texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError
from unmask.experiments.setup import PUBLISHED, TEN, Method, Part, Setup
from unmask.report.gather import Group, Quantity, Result, Series, grouped
from unmask.report.statistics import Comparison, Difference, Estimate, compare, mean_difference, together
from unmask.runs.files import write_whole
from unmask.runs.grid import meaning
from unmask.runs.header import HEAD, difference
from unmask.runs.record import Record
from unmask.runs.store import Run, pack, read_lines, read_run, unpack

EXPERIMENT, MEASURED = "experiment.json", "measured.json"
FORMAT = 1
Names = Sequence[str] | None  # of benchmarks or methods; None: all


@dataclass(frozen=True)
class Results:
    """The records and measurements of one experiment, by benchmark and method."""

    experiment: str  # its name
    command: str  # the command that runs it again
    setup: Setup
    parts: Sequence[Part]
    runs: Mapping[str, Run] = field(default_factory=dict)  # by part
    measured: Any = None  # the result of an experiment that is not an evaluation

    @cached_property
    def groups(self) -> dict[str, Group]:
        """Return a group for each benchmark that has records, in the order of the experiment."""
        benchmarks = dict.fromkeys(part.benchmark for part in self.parts if part.name in self.runs)
        return {benchmark: self._group(benchmark) for benchmark in benchmarks}

    def _group(self, benchmark: str) -> Group:
        records: dict[str, dict[int, list[Record]]] = {}
        parts = [part for part in self.parts if part.benchmark == benchmark]
        for part in parts:
            run = self.runs.get(part.name)
            by_cell = grouped(run.records, attrgetter("decoder", "length")) if run else {}
            for method, length in product(part.methods, part.lengths):
                cell = (meaning(method.spec, length) or method.spec, length)
                if cell in by_cell:
                    records.setdefault(method.name, {}).setdefault(length, by_cell[cell])
        lengths = {length for part in parts for length in part.lengths}
        methods = [method for method in self.methods if method.name in records]
        series = [Series(method.label, records[method.name], name=method.name) for method in methods]
        return Group(self.setup.model, self.setup.tasks.get(benchmark, benchmark), sorted(lengths), series)

    @cached_property
    def by_seed(self) -> dict[int, Results]:
        """Return the results under each seed; a part that was not run under a seed keeps all its records."""

        def under(run: Run, seed: int) -> Run:
            return replace(run, records=[record for record in run.records if record.seed == seed] or run.records)

        seeds = {record.seed for run in self.runs.values() for record in run.records}
        return {seed: replace(self, runs={name: under(run, seed) for name, run in self.runs.items()}) for seed in seeds}

    @property
    def benchmarks(self) -> list[str]:
        return list(self.groups)

    @cached_property
    def methods(self) -> list[Method]:
        """Return the methods that have records, those of Table 1 in its order."""
        methods = dict.fromkeys(method for part in self.parts if part.name in self.runs for method in part.methods)
        known = all(method.name in TEN for method in methods)
        return sorted(methods, key=lambda method: TEN.index(method.name)) if known else list(methods)

    def label(self, name: str) -> str:
        methods = (method for part in self.parts for method in part.methods)
        return next((method.label for method in methods if method.name == name), name)

    def shown(self, benchmark: str) -> str:
        """Return the name of the benchmark, or of the task that replaces it, since their figures do not compare."""
        task = self.setup.tasks.get(benchmark, benchmark)
        return benchmark if task == PUBLISHED.tasks.get(benchmark) else task

    def title(self, benchmark: str) -> str:
        return f"{benchmark} · {self.setup.tasks[benchmark]}"

    def plot_title(self, benchmark: str) -> str:
        return f"{self.setup.model} · {self.setup.tasks[benchmark]}"

    def series(self, benchmark: str, method: str) -> Series | None:
        group = self.groups.get(benchmark)
        return next((series for series in group.series if series.name == method), None) if group else None

    def by_length(self, benchmark: str, method: str) -> Mapping[int, Result]:
        series = self.series(benchmark, method)
        return series.results if series else {}

    def accuracy(self, benchmark: str, method: str, quantity: Quantity = "right") -> Estimate:
        """Return the average over all lengths."""
        series = self.series(benchmark, method)
        return series.average(self.groups[benchmark].lengths, quantity) if series else Estimate(None, None, 0)

    def average(self, method: str) -> Estimate:
        """Return the average over all benchmarks, which have equal weight."""
        return together([self.accuracy(benchmark, method) for benchmark in self.benchmarks])

    def mean_cost(self, method: str, unit: str = "forward_passes") -> float:
        """Return the cost per problem, averaged over benchmarks with equal weight; 0 if nothing is recorded."""
        costs = [
            result.cost[unit] for benchmark in self.benchmarks for result in self.by_length(benchmark, method).values()
        ]
        return sum(costs) / len(costs) if costs else 0.0

    def difference(
        self, after: str, before: str, benchmarks: Names = None, quantity: Quantity = "right"
    ) -> Difference | None:
        """Return `after` minus `before`, paired by problem and averaged over lengths; None if one has no records."""
        chosen = self.benchmarks if benchmarks is None else benchmarks
        return mean_difference([self._compare(benchmark, before, after, quantity) for benchmark in chosen])

    @cached_property
    def _compare(self) -> Callable[..., Comparison | None]:
        @cache  # tables, figures and claims share the comparisons, whose bootstrap is slow
        def compared(benchmark: str, before: str, after: str, quantity: Quantity) -> Any:
            lengths = self.groups[benchmark].lengths
            pair = [self.series(benchmark, method) for method in (before, after)]
            return compare(*(series.by_problem(lengths, quantity) if series else {} for series in pair))

        return compared


def header(results: Results) -> dict[str, Any]:
    """Return the content of `experiment.json`: everything that was planned."""
    head = {"format": FORMAT, "experiment": results.experiment, "command": results.command}
    plain = head | {"setting": asdict(results.setup), "parts": [asdict(part) for part in results.parts]}
    return json.loads(json.dumps(plain))  # tuples become lists


def begin(folder: Path, results: Results) -> None:
    """Write `experiment.json`, or check that the folder holds the same experiment."""
    path, new = folder / EXPERIMENT, header(results)
    if path.exists():
        old = json.loads(path.read_text("utf-8"))
        if old | {"command": ""} != new | {"command": ""}:
            change = difference(old["setting"], new["setting"]) or "other cells"
            raise UnmaskError(f"{str(folder)!r} holds a different experiment ({change}): use a new folder")
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(new, ensure_ascii=False, indent=1) + "\n")


def read(folder: Path) -> Results:
    """Return the results of a folder that `begin` wrote."""
    head = json.loads((folder / EXPERIMENT).read_text("utf-8"))
    names = [part["name"] for part in head["parts"]]
    runs = {name: read_run(folder / name) for name in names if (folder / name / HEAD).exists()}
    measured = folder / MEASURED
    return _results(head, folder, runs, json.loads(measured.read_text("utf-8")) if measured.exists() else None)


def packed(results: Results) -> Iterator[dict[str, Any]]:
    """Yield the lines of a packed file: what was planned and measured, and the runs without texts."""
    yield {"asked": header(results), "measured": results.measured}
    for part, run in results.runs.items():
        yield {"part": part, **pack(run)}


def read_packed(path: Path) -> Results:
    first, *rest = read_lines(path)
    runs = {line["part"]: unpack(line, line["part"]) for line in rest}
    return _results(first["asked"], path, runs, first["measured"])


def _results(head: dict[str, Any], path: Path, runs: dict[str, Any], measured: Any) -> Results:
    if head.get("format") != FORMAT:
        raise UnmaskError(f"{str(path)!r} must be an experiment of format {FORMAT}, got format {head.get('format')!r}")
    methods = [{"methods": [Method(**method) for method in part["methods"]]} for part in head["parts"]]
    parts = [Part(**_tuples(part | made)) for part, made in zip(head["parts"], methods, strict=True)]
    return Results(head["experiment"], head["command"], Setup(**_tuples(head["setting"])), parts, runs, measured)


def _tuples(plain: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in plain.items()}
