"""The benchmark's loop: contenders run in turn, and results are shown and saved as they come."""

from __future__ import annotations

import logging
import math
import os
import platform
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from unmask.bench.cases import Case, Plan, Sizes
from unmask.bench.contenders import CONTENDERS, SURE, observe, threshold
from unmask.bench.instruments import agreement
from unmask.bench.measurement import Measurement, allocated, measure, peak
from unmask.bench.report import analyze
from unmask.bench.subject import Subject
from unmask.decoders import OrderTokenSearch
from unmask.errors import UnmaskError
from unmask.version import __version__

log = logging.getLogger("unmask.bench")
FORMAT, VERSION = "unmask-bench", 1


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
            "plan": self.plan.record(),
            "peak": peak(subject.device, subject.weight_dtype),
            "agreement": {},
            "replay": None,
        }
        speed = self.about["peak"]["flops"] / 1e12
        self.show(f"{subject.name} on {self.about['machine']['device']}: {speed:.2f} TFLOP/s")
        self._observe_threshold()
        self._measure_all(self.plan.compared())
        self._compare_with_plain()
        for cases in self.plan.swept():
            self._measure_all(cases, self.plan.patience)
        return self.results()

    def results(self) -> dict[str, Any]:
        return self.about | analyze(self.cases, self.subject.network.module.shape, self.about["peak"]["flops"])

    def _measure_all(self, cases: Sequence[Case], patience: float = math.inf) -> None:
        """Round by round, so that all cases meet the same conditions."""
        self.cases += cases
        for number in range(1, self.plan.repeat + 1):
            for case in cases:
                if number == 1:
                    self._warm_up(case)
                if max(case.seconds, default=0.0) <= patience:
                    self._measure(case, f"round {number} of {self.plan.repeat}")

    def _warm_up(self, case: Case) -> None:
        """A few steps. In a sweep only contenders that compile layers or capture graphs per shape need them."""
        prepares = CONTENDERS[case.contender].compiled or CONTENDERS[case.contender].caches
        if case.axis is None or prepares:
            run = self._run(case, case.sizes.warm_up(), None if prepares else 1)
            if run:
                self.show(f"{case.name}: warmed up in {run.seconds:.2f} s")

    def _measure(self, case: Case, when: str) -> None:
        run = self._run(case, case.sizes)
        if run:
            case.runs.append(run)
            self.show(f"{case.name}: {run.seconds:.2f} s ({when})")
            self.save(self.results())

    def _run(self, case: Case, sizes: Sizes, problems: int | None = None) -> Measurement | None:
        """A contender that fails is reported, and the others go on."""
        if case.error or self._late():
            return None
        contender, prompts = CONTENDERS[case.contender], self.subject.prompts(case.sizes)[:problems]
        baseline = self.about["machine"]["memory"] if contender.caches else None  # caches keep memory between runs
        try:
            return measure(
                lambda measurement: contender.run(self.subject, prompts, sizes, self.plan.seed, measurement),
                self.subject.device,
                baseline,
            )
        except Exception as error:
            if isinstance(error, UnmaskError) and not any(case.runs for case in self.cases):
                raise  # bad input: no contender could run
            case.error = self._failed(case.name, error)
            return None

    def _failed(self, what: str, error: Exception) -> str:
        sentence = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        log.error("%s failed", what, exc_info=error)
        self.show(f"{what}: failed ({sentence})")
        return sentence

    def _observe_threshold(self) -> None:
        """Random weights need a number of steps per block for threshold writing."""
        names = [name for name in self.plan.contenders if CONTENDERS[name].decoder is threshold]
        if not names or self.subject.model is not None:
            return
        decoder = OrderTokenSearch(self.plan.sizes.beams, temperature=self.plan.sizes.temperature, sure=SURE)
        try:
            replay = observe(decoder, self.subject.device, self.plan.watched, self.plan.seed)
        except Exception as error:
            self._failed("observing the embedded model", error)
            kept = tuple(name for name in self.plan.contenders if name not in names)
            self.plan = replace(self.plan, contenders=kept)
            return
        self.about["replay"] = replay
        self.subject = replace(self.subject, steps_per_block=replay["mean_steps"])
        self.show(f"with threshold writing the embedded model takes {replay['mean_steps']:.1f} steps per block")

    def _compare_with_plain(self) -> None:
        """How far rounding moves the exact contenders."""
        measured = [case.name for case in self.cases if case.runs]
        for name in ("ots", "ots-compiled"):
            if name in measured and not self._late():
                denoiser = self.subject.compiled if CONTENDERS[name].compiled else self.subject.denoiser
                self.about["agreement"][name] = agreement(self.subject, denoiser, self.plan.sizes, self.plan.seed)
                self.save(self.results())

    def _late(self) -> bool:
        return self.plan.limit is not None and time.perf_counter() - self.began > self.plan.limit


def machine(subject: Subject) -> dict[str, Any]:
    device = subject.device
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else processor(),
        "kind": device.type,
        "dtype": str(subject.weight_dtype).removeprefix("torch."),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory": allocated(device),  # of the weights, before anything ran
    }


def processor() -> str:
    info = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*:\s*(.+)", info.read_text(encoding="utf-8"), re.M) if info.exists() else []
    return names[0].strip() if names else platform.machine()
