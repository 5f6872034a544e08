"""The benchmark's plan and loop: contenders run in turn, and results are shown and saved as they come."""

from __future__ import annotations

import logging
import math
import os
import platform
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from unmask.bench.contenders import CONTENDERS, agreement
from unmask.bench.report import analyze
from unmask.bench.subject import Measurement, Sizes, Subject, allocated, measure
from unmask.errors import UnmaskError, check_at_least, check_known
from unmask.version import __version__

log = logging.getLogger("unmask.bench")
FORMAT, VERSION = "unmask-bench", 2
AXES: dict[str, tuple[int, ...]] = {"beams": (2, 4, 8), "length": (64, 128, 256), "problems": (1, 4, 16)}
SWEPT = ("ots-cached", "ots")  # the contenders of a sweep, cheapest first; their compiled forms if those are measured
PATIENCE = 6.0  # seconds: cases of a sweep that take longer are not repeated


@dataclass
class Case:
    """One contender at certain sizes, and its runs so far."""

    contender: str
    sizes: Sizes
    axis: str | None = None  # axis of the sweep; None in the comparison
    runs: list[Measurement] = field(default_factory=list)
    error: str = ""

    @property
    def name(self) -> str:
        return self.contender if self.axis is None else f"{self.contender}@{self.axis}={getattr(self.sizes, self.axis)}"

    @property
    def seconds(self) -> list[float]:
        return [run.seconds for run in self.runs]


@dataclass(frozen=True)
class Plan:
    sizes: Sizes
    contenders: tuple[str, ...]
    sweeps: tuple[tuple[str, tuple[int, ...]], ...] = ()
    repeat: int = 3  # measured rounds
    limit: float | None = None  # seconds: no run starts after this time
    seed: int = 0

    def __post_init__(self) -> None:
        check_at_least(1, repeat=self.repeat)
        check_at_least(0, limit=self.limit)
        if not self.contenders:
            raise UnmaskError("there is nothing to measure: name at least one contender")

    def swept(self) -> Iterator[list[Case]]:
        """Yield the cases of each sweep, cheapest first. The comparison already covers the plan's own sizes."""
        preferred = [name if f"{name}-compiled" not in self.contenders else f"{name}-compiled" for name in SWEPT]
        names = [name for name in preferred if name in self.contenders]
        for axis, values in self.sweeps:
            cases = [Case(name, self.sizes.along(axis, value), axis) for value in sorted(values) for name in names]
            yield [case for case in cases if case.sizes != self.sizes]


def read_sweep(text: str) -> tuple[str, tuple[int, ...]]:
    """Read `beams` or `beams=2,4,8`."""
    axis, equals, numbers = text.partition("=")
    check_known(AXES, sweep=axis)
    if equals and not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", numbers):
        raise UnmaskError(f"sweep {text!r} is not a list of whole numbers: write {axis}=2,4,8")
    values = tuple(map(int, numbers.split(","))) if equals else AXES[axis]
    check_at_least(1, **{f"every value of sweep {text!r}": min(values)})
    return axis, values


@dataclass
class BenchmarkRun:
    plan: Plan
    subject: Subject
    show: Callable[[str], None] = lambda line: None
    save: Callable[[dict[str, Any]], None] = lambda results: None
    note: str = ""
    cases: list[Case] = field(default_factory=list)

    def run(self) -> dict[str, Any]:
        self.began = time.perf_counter()
        subject = self.subject
        self.about: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "unmask": __version__,
            "model": subject.name,
            "random": subject.model is None,  # then the model is a shape
            "parameters": subject.network.module.shape.parameters,
            "machine": machine(subject),
            "note": self.note,
            "plan": asdict(self.plan) | {"sweeps": {axis: list(values) for axis, values in self.plan.sweeps}},
            "agreement": {},
        }
        self.show(f"{subject.name} on {self.about['machine']['device']}")
        self._measure_all([Case(name, self.plan.sizes) for name in self.plan.contenders])
        self._compare_with_plain()
        for cases in self.plan.swept():
            self._measure_all(cases, PATIENCE)
        return self.results()

    def results(self) -> dict[str, Any]:
        return self.about | analyze(self.cases)

    def _measure_all(self, cases: Sequence[Case], patience: float = math.inf) -> None:
        """Measure round by round, so that all cases run under the same conditions."""
        self.cases += cases
        for number in range(1, self.plan.repeat + 1):
            for case in cases:
                if number == 1:
                    self._warm_up(case)
                run = self._run(case, case.sizes) if max(case.seconds, default=0.0) <= patience else None
                if run:
                    case.runs.append(run)
                    self.show(f"{case.name}: {run.seconds:.2f} s (round {number} of {self.plan.repeat})")
                    self.save(self.results())

    def _warm_up(self, case: Case) -> None:
        """Run a few steps. In a sweep only contenders that compile layers or capture graphs per shape need them."""
        prepares = CONTENDERS[case.contender].compiled or CONTENDERS[case.contender].caches
        if case.axis is None or prepares:
            run = self._run(case, case.sizes.warm_up(), None if prepares else 1)
            if run:
                self.show(f"{case.name}: warmed up in {run.seconds:.2f} s")

    def _run(self, case: Case, sizes: Sizes, problems: int | None = None) -> Measurement | None:
        """Run a contender. One that fails is reported, and the others go on."""
        if case.error or self._late():
            return None
        contender, prompts = CONTENDERS[case.contender], self.subject.prompts(case.sizes)[:problems]
        baseline = self.about["machine"]["memory"] if contender.caches else None  # caches keep memory between runs
        try:
            run = partial(contender.run, self.subject, prompts, sizes, self.plan.seed)
            return measure(run, self.subject.network.device, baseline)
        except Exception as error:
            if isinstance(error, UnmaskError) and not any(case.runs for case in self.cases):
                raise  # bad input: no contender could run
            case.error = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            log.error("%s failed", case.name, exc_info=error)
            self.show(f"{case.name}: failed ({case.error})")
            return None

    def _compare_with_plain(self) -> None:
        """Measure how far rounding moves the exact contenders."""
        measured = [case.name for case in self.cases if case.runs]
        for name in ("ots", "ots-compiled"):
            if name in measured and not self._late():
                denoiser = self.subject.compiled if CONTENDERS[name].compiled else self.subject.network
                self.about["agreement"][name] = agreement(self.subject, denoiser, self.plan.sizes, self.plan.seed)
                self.save(self.results())

    def _late(self) -> bool:
        return self.plan.limit is not None and time.perf_counter() - self.began > self.plan.limit


def machine(subject: Subject) -> dict[str, Any]:
    device = subject.network.device
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else processor(),
        "kind": device.type,
        "dtype": str(subject.network.module.embed.weight.dtype).removeprefix("torch."),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory": allocated(device),  # bytes of the weights, before anything ran
    }


def processor() -> str:
    info = Path("/proc/cpuinfo")
    name = re.search(r"^model name\s*:\s*(.+)", info.read_text(encoding="utf-8"), re.M) if info.exists() else None
    return name[1].strip() if name else platform.machine()
