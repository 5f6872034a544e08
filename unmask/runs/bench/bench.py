"""The benchmark's loop: contenders in turns, every run's figures kept, results told and saved as they come."""

from __future__ import annotations

import logging
import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from unmask.decoders import OrderTokenSearch
from unmask.errors import UnmaskError
from unmask.runs.bench import clock
from unmask.runs.bench.agreement import agreement
from unmask.runs.bench.bed import Bed
from unmask.runs.bench.contenders import CONTENDERS, SURE, Ran
from unmask.runs.bench.plan import Plan, Sizes, Trial
from unmask.runs.bench.replay import measure
from unmask.runs.bench.results import Outcome, results
from unmask.version import __version__

log = logging.getLogger("unmask.bench")
FORMAT, VERSION = "unmask-bench", 1


@dataclass
class Bench:
    plan: Plan
    bed: Bed
    tell: Callable[[str], None] = lambda line: None
    save: Callable[[dict[str, Any]], None] = lambda found: None
    note: str = ""
    outcomes: list[Outcome] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)

    def __call__(self) -> dict[str, Any]:
        self.began = time.perf_counter()
        self.about = {
            "format": FORMAT,
            "version": VERSION,
            "unmask": __version__,
            "model": self.bed.name,
            "random": self.bed.model is None,  # weights: the model is then a shape
            "parameters": self.bed.network.module.shape.parameters,
            "machine": machine(self.bed),
            "note": self.note,
            "plan": self.plan.record(),
            "peak": clock.peak(self.bed.device, self.bed.weight_dtype),
            "agreement": {},
            "replay": None,
        }
        self.tell(
            f"{self.bed.name} on {self.about['machine']['device']}: {self.about['peak']['flops'] / 1e12:.2f} TFLOP/s"
        )
        self._replay()
        self._compare(self.plan.compared())
        self._agree()
        for trials in self.plan.swept():
            self._compare(trials, self.plan.patience)
        return self.found()

    def found(self) -> dict[str, Any]:
        return {**self.about, **results(self.outcomes, self.bed.network.module.shape, self.about["peak"]["flops"])}

    def _compare(self, trials: Sequence[Trial], patience: float = math.inf) -> None:
        """Round by round, so that everyone meets the same weather; in the first everyone is warmed up before."""
        begun = [Outcome(trial, self.bed.prompts(trial.sizes)) for trial in trials]
        self.outcomes += begun
        for number in range(1, self.plan.repeat + 1):
            for outcome in begun:
                if number == 1:
                    self._warm(outcome)
                if max(outcome.seconds, default=0.0) <= patience:
                    self._measure(outcome, f"round {number} of {self.plan.repeat}")

    def _warm(self, outcome: Outcome) -> None:
        """A few steps. In a sweep only what prepares itself for a shape needs them again."""
        trial, prepares = outcome.trial, CONTENDERS[outcome.trial.contender].prepares
        if self._late() or (trial.axis and not prepares):
            return
        took = self._tried(outcome, trial.sizes.warm(), outcome.prompts if prepares else outcome.prompts[:1])
        if took:
            self.tell(f"{trial.name}: warmed up in {took[1]:.2f} s")

    def _measure(self, outcome: Outcome, when: str) -> None:
        if outcome.error or self._late():
            return
        keeps = CONTENDERS[outcome.trial.contender].keeps
        before = self.about["machine"]["memory"] if keeps else allocated(self.bed.device)
        took = self._tried(outcome, outcome.trial.sizes, outcome.prompts)
        if took:
            outcome.add(*took, allocated(self.bed.device, peak=True) - before)
            self.tell(f"{outcome.trial.name}: {took[1]:.2f} s ({when})")
            self.save(self.found())

    def _tried(self, outcome: Outcome, sizes: Sizes, prompts: list[list[int]]) -> tuple[Ran, float, float] | None:
        """One run, its seconds and those on the wall; a contender that fails is named, and the others go on."""
        device = self.bed.device
        try:
            with torch.inference_mode():
                clock.wait(device)
                if device.type == "cuda":
                    torch.cuda.reset_peak_memory_stats(device)
                began, wall = clock.now(device), time.perf_counter()
                ran = CONTENDERS[outcome.trial.contender].run(self.bed, prompts, sizes, self.plan.seed)
                clock.wait(device)
                return ran, clock.now(device) - began, time.perf_counter() - wall
        except Exception as error:
            if isinstance(error, UnmaskError) and not any(one.seconds for one in self.outcomes):
                raise  # what was asked for cannot be, for anyone
            outcome.error = self._failed(outcome.trial.name, error)
            return None

    def _failed(self, what: str, error: Exception) -> str:
        said = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        log.error("%s failed", what, exc_info=error)
        self.tell(f"{what}: failed ({said})")
        return said

    def _replay(self) -> None:
        """Before a contender needs it: how many steps threshold writing takes where weights can be sure."""
        sizes, names = self.plan.sizes, {one for one in self.plan.contenders if one.startswith("ots-cached-threshold")}
        if not names or self.bed.model is not None:
            return
        decoder = OrderTokenSearch(sizes.beams, temperature=sizes.temperature, sure=SURE)
        try:
            found = measure(decoder, self.bed.device, self.plan.watched, self.plan.seed)
        except Exception as error:
            self._failed("watching the embedded model", error)
            self.plan = replace(self.plan, contenders=tuple(one for one in self.plan.contenders if one not in names))
            return
        self.about["replay"] = found
        self.bed = replace(self.bed, replay=found["mean_steps"])
        self.tell(f"with threshold writing a block of the embedded model's takes {found['mean_steps']:.1f} steps")

    def _agree(self) -> None:
        """Of exact contenders that ran: what rounding made of them."""
        exact = {"ots": lambda: self.bed.denoiser, "ots-compiled": lambda: self.bed.compiled}
        ran = [outcome.trial.name for outcome in self.outcomes if outcome.seconds]
        for name, denoiser in exact.items():
            if name in ran and not self._late():
                self.about["agreement"][name] = agreement(self.bed, denoiser(), self.plan.sizes, self.plan.seed)
                self.save(self.found())

    def _late(self) -> bool:
        return self.plan.limit is not None and time.perf_counter() - self.began > self.plan.limit


def allocated(device: torch.device, peak: bool = False) -> int:
    """Bytes; 0 where the device does not say."""
    if device.type != "cuda":
        return 0
    return torch.cuda.max_memory_allocated(device) if peak else torch.cuda.memory_allocated(device)


def machine(bed: Bed) -> dict[str, Any]:
    cuda = bed.device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(bed.device) if cuda else processor(),
        "kind": bed.device.type,
        "dtype": str(bed.weight_dtype).removeprefix("torch."),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory": allocated(bed.device),  # weights, before anything ran
    }


def processor() -> str:
    """As the system names it, where it does."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())
