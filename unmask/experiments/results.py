"""What an experiment asked for and everything that was recorded for it. What ran, read from the records themselves: beams, temperatures, samples, lengths and seeds. Seconds of decoders, and the machine and arithmetic of what was measured."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import product
from operator import attrgetter
from typing import Any

import torch

from unmask.core import Decoder, decoder
from unmask.experiments.methods import TEN, Method, Part
from unmask.experiments.setup import PUBLISHED, Setup
from unmask.models import Model
from unmask.report.gather import Group, Quantity, Result, Series, grouped
from unmask.report.statistics import Comparison, Difference, Estimate, compare, mean_difference, together
from unmask.runs.grid import meaning
from unmask.runs.record import Record
from unmask.runs.settings import Placement
from unmask.runs.store import Run


@dataclass(frozen=True)
class Evidence:
    experiment: str
    command: str  # that runs it again
    setup: Setup
    parts: Sequence[Part]
    runs: Mapping[str, Run] = field(default_factory=dict)  # by part
    measured: Any = None  # the result of an experiment that is not an evaluation

    @cached_property
    def groups(self) -> dict[str, Group]:
        """By benchmark that has records, in the experiment's order."""
        benchmarks = dict.fromkeys(part.benchmark for part in self.parts if part.name in self.runs)
        return {benchmark: self._group(benchmark) for benchmark in benchmarks}

    def _group(self, benchmark: str) -> Group:
        records: dict[str, dict[int, list[Record]]] = {}
        parts = [part for part in self.parts if part.benchmark == benchmark]
        for part in parts:
            drawn = (
                grouped(self.runs[part.name].records, attrgetter("decoder", "length")) if part.name in self.runs else {}
            )
            for method, length in product(part.methods, part.lengths):
                cell = (meaning(method.spec, length) or method.spec, length)
                if cell in drawn:
                    records.setdefault(method.name, {}).setdefault(length, drawn[cell])
        lengths = {length for part in parts for length in part.lengths}
        methods = [method for method in self.methods if method.name in records]
        series = [Series(method.label, records[method.name], name=method.name) for method in methods]
        return Group(self.setup.model, self.setup.tasks.get(benchmark, benchmark), sorted(lengths), series)

    @property
    def benchmarks(self) -> list[str]:
        return list(self.groups)

    @cached_property
    def methods(self) -> list[Method]:
        """Those that have records: the paper's in its order, others in the experiment's."""
        methods = dict.fromkeys(method for part in self.parts if part.name in self.runs for method in part.methods)
        known = all(method.name in TEN for method in methods)
        return sorted(methods, key=lambda method: TEN.index(method.name)) if known else list(methods)

    def label(self, name: str) -> str:
        methods = (method for part in self.parts for method in part.methods)
        return next((method.label for method in methods if method.name == name), name)

    def shown(self, benchmark: str) -> str:
        """The benchmark's name, or that of the task that replaces it here: their figures do not compare."""
        task = self.setup.tasks.get(benchmark, benchmark)
        return benchmark if task == PUBLISHED.tasks.get(benchmark) else task

    def title(self, benchmark: str) -> str:
        return f"{benchmark} · {self.setup.tasks[benchmark]}"

    def series(self, benchmark: str, method: str) -> Series | None:
        group = self.groups.get(benchmark)
        return next((series for series in group.series if series.name == method), None) if group else None

    def results(self, benchmark: str, method: str) -> Mapping[int, Result]:
        series = self.series(benchmark, method)
        return series.results if series else {}

    def accuracy(self, benchmark: str, method: str, quantity: Quantity = "right") -> Estimate:
        """Over all lengths."""
        series = self.series(benchmark, method)
        return series.average(self.groups[benchmark].lengths, quantity) if series else Estimate(None, None, 0)

    def average(self, method: str) -> Estimate:
        """Over all benchmarks with equal weight."""
        return together([self.accuracy(benchmark, method) for benchmark in self.benchmarks])

    def mean_cost(self, method: str, unit: str) -> float:
        """Per problem, over all benchmarks with equal weight; 0 if nothing is recorded."""
        results = [result for benchmark in self.benchmarks for result in self.results(benchmark, method).values()]
        return sum(result.cost[unit] for result in results) / len(results) if results else 0.0

    def difference(
        self,
        after: str,
        before: str,
        benchmarks: Iterable[str] | None = None,
        quantity: Quantity = "right",
        length: int | None = None,
    ) -> Difference | None:
        """`after` minus `before`, paired by problem, at one length or averaged over lengths; None if one is missing."""
        chosen = self.benchmarks if benchmarks is None else benchmarks
        return mean_difference([self._compare(benchmark, before, after, quantity, length) for benchmark in chosen])

    @cached_property
    def _compare(self) -> Callable[..., Comparison | None]:
        @cache  # tables, figures and claims share the comparisons, and their bootstrap takes time
        def compared(benchmark: str, before: str, after: str, quantity: Quantity, length: int | None) -> Any:
            lengths = self.groups[benchmark].lengths if length is None else [length]
            pair = [self.series(benchmark, method) for method in (before, after)]
            return compare(*(series.by_problem(lengths, quantity) if series else {} for series in pair))

        return compared


def settings_run(evidence: Evidence) -> str:
    """In words, such as: K = 4; τ = 1.0 (searches), 0 and 0.7 (paths); votes of 5; L = 64."""
    values: dict[str, set[Any]] = {}
    for spec, length in sorted(_cells(evidence)):
        values.setdefault("L", set()).add(length)
        for name, value in _settings(decoder.make(spec)):
            values.setdefault(name, set()).add(value)
    words = [f"K = {_list(values['K'])}"] if "K" in values else []
    drawn = [f"{_list(values[kind])} ({kind})" for kind in ("searches", "paths") if kind in values]
    words += [f"τ = {', '.join(drawn)}"] if drawn else []
    words += [f"votes of {_list(values['n'])}"] if "n" in values else []
    return "; ".join([*words, f"L = {_list(values['L'])}"]) if values else ""


def _cells(evidence: Evidence) -> set[tuple[str, int]]:
    """Decoders and lengths of the records, or of the parts where something else than answers was measured."""
    records = {(record.decoder, record.length) for run in evidence.runs.values() for record in run.records}
    planned = {
        (method.spec, length) for part in evidence.parts for method, length in product(part.methods, part.lengths)
    }
    return records or planned


def _settings(chosen: Decoder) -> Iterator[tuple[str, Any]]:
    if hasattr(chosen, "n"):
        yield "n", chosen.n  # type: ignore[attr-defined]
    inner: Any = getattr(chosen, "inner", chosen)
    if hasattr(inner, "beams"):
        yield "K", inner.beams
    if hasattr(inner, "temperature"):
        yield "searches" if hasattr(inner, "beams") else "paths", float(inner.temperature)


def _list(values: set[Any]) -> str:
    return ", ".join(f"{value:g}" for value in sorted(values))


def seconds_of(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return round(time.perf_counter() - start, 5)


def circumstances(model: Model, placement: Placement) -> dict[str, Any]:
    device, dtype = model.denoiser.device, str(model.denoiser.dtype).removeprefix("torch.")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    here = {"device": device.type, "name": name, "torch": torch.__version__, "threads": torch.get_num_threads()}
    return {"machine": here | {"dtype": dtype}, "precision": placement.precision}
