"""A worker holds a model, decodes jobs and returns records that are not graded yet. It is the same in every engine.

Jobs and results may be pickled on their way: they hold settings, prompts and texts, and never a tensor.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import unmask.tasks  # noqa: F401  registers the tasks
from unmask import environment
from unmask.errors import UnmaskError
from unmask.models import Messages, Model
from unmask.models.checkpoints.fingerprint import local_fingerprint
from unmask.models.devices import free, proc_bytes
from unmask.runs.files import finite_values
from unmask.runs.generation import Generation, Output
from unmask.runs.header import arithmetic
from unmask.runs.record import Cell, Counts, Measured, Record
from unmask.runs.settings import Decoding, Placement
from unmask.runs.text import EncodedPrompt
from unmask.tasks import Task, task
from unmask.version import __version__

SHARE = 0.8  # share of the free memory that is used unless a budget is given


@dataclass(frozen=True)
class Job:
    """Problems of one cell, seed and sample."""

    cell: Cell
    seed: int  # seed of the run
    sample: int
    decoding: Decoding  # with the sample's own seed
    placement: Placement
    traced: bool
    problems: tuple[tuple[str, Messages], ...]  # the id and the prompt of each problem

    def part(self, start: int, stop: int) -> Job:
        """Return a job of some of its problems."""
        return replace(self, problems=self.problems[start:stop])

    @property
    def shape(self) -> tuple[str, str, int]:
        """The settings that decide how many problems fit the memory together."""
        return (self.cell.model, self.cell.decoder, self.cell.length)

    def record(self, problem: str, prompt: str = "", *, measured: Measured, **values: Any) -> Record:
        """Return the record of one of its problems, dated now."""
        version = task.make(self.cell.task).version
        measured = replace(measured, time=now())
        names = {"task_version": version, "seed": self.seed, "sample": self.sample, "problem": problem}
        return Record(**self.cell._asdict(), **names, prompt=prompt, measured=measured, **values)


@dataclass(frozen=True)
class Answer:
    """A record that is not graded yet, and what belongs to it."""

    record: Record
    uncut: str = ""  # the text up to the last mask with its special tokens, which the metric `d1` grades
    trace: str | None = None  # content of the trace file, if requested


@dataclass(frozen=True)
class Done:
    """The result of a job."""

    answers: tuple[Answer, ...]  # in the job's order
    fitted: int  # problems that went through together
    fits_double: bool  # twice as many would fit the memory
    seconds: float
    checkpoint: dict[str, Any] | None = None  # fingerprint of the model that answered


class Worker:
    """Decodes jobs, keeping the model of the last one."""

    def __init__(self, share: float = 1.0):
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.share = share  # share of the machine's free memory that belongs to this worker
        self._held: tuple[tuple[str, Placement], Model, Gauge, dict[str, Any] | None] | None = None

    def facts(self) -> dict[str, Any]:
        """Return what must agree between the workers of a run."""
        facts = {"name": self.name, "unmask": __version__, "deterministic": environment.deterministic()}
        return facts | {"arithmetic": arithmetic()}

    def run(self, job: Job) -> Done:
        """Decode the problems of a job together, or in smaller batches where they do not fit the memory."""
        torch.set_float32_matmul_precision(job.placement.precision)
        model, gauge, fingerprint = self._model(job)
        generation = Generation(model, job.decoding, key=_key(task.make(job.cell.task)), task=job.cell.task)
        base, began = gauge.begin(), time.perf_counter()
        prompts: list[Any] = [generation.try_read(list(messages)) for _, messages in job.problems]
        outcomes, batches = list(prompts), [0] * len(prompts)
        able = {number: prompt for number, prompt in enumerate(prompts) if isinstance(prompt, EncodedPrompt)}
        for outputs in generation.decode_apart(able, job.traced):
            for number, output in outputs.items():
                outcomes[number], batches[number] = output, len(outputs)
        peak, seconds = gauge.peak(), time.perf_counter() - began
        answers = [
            self._answer(job, number, prompts[number], outcome, Measured(memory=peak, batch=batches[number]))
            for number, outcome in enumerate(outcomes)
        ]
        fitted = len(prompts) if max(batches) == len(able) else max(batches)
        return Done(tuple(answers), fitted, gauge.fits_double(base, peak), seconds, fingerprint)

    def _model(self, job: Job) -> tuple[Model, Gauge, dict[str, Any] | None]:
        """Load a job's model, after freeing the last job's."""
        wanted = (job.cell.model, job.placement)
        if self._held is None or self._held[0] != wanted:
            self._held = None
            torch.cuda.empty_cache()
            model = job.placement.load(job.cell.model)
            gauge = Gauge(model.denoiser.device, job.placement.budget, self.share)
            self._held = (wanted, model, gauge, local_fingerprint(job.cell.model))
        return self._held[1:]

    def _answer(self, job: Job, number: int, prompt: Any, outcome: Output | UnmaskError, measured: Measured) -> Answer:
        problem, text = job.problems[number][0], prompt.text if isinstance(prompt, EncodedPrompt) else ""
        measured = replace(measured, worker=self.name)
        if isinstance(outcome, UnmaskError):
            return Answer(job.record(problem, text, error=str(outcome), measured=measured))
        cost = outcome.cost
        record = job.record(
            problem,
            text,
            text=outcome.text,
            likelihood=finite_values(outcome.score),
            verdict=outcome.verdict,
            cost=Counts(cost.forward_passes, cost.computed, cost.positions, cost.checks),
            measured=replace(
                measured,
                calls=cost.calls,
                seconds=round(cost.seconds, 6),
                check_seconds=round(cost.check_seconds, 6),
            ),
        )
        assert self._held is not None
        uncut = self._held[1].text.decode(outcome.hypotheses[outcome.chosen].ids[len(prompt.ids) :])
        return Answer(record, uncut, "".join(outcome.trace.lines()) if outcome.trace else None)


class Gauge:
    """The memory in use on a device, against a budget."""

    def __init__(self, device: torch.device, budget: int | None, share: float = 1.0):
        self.device = device
        unused = free(device)
        self.budget = budget if unused is None or budget is not None else self.used() + int(SHARE * share * unused)

    def used(self) -> int:
        """Return the bytes in use now."""
        if self.device.type == "cuda":
            return torch.cuda.memory_allocated(self.device)
        return proc_bytes("self/status", "VmRSS") or 0

    def begin(self) -> int:
        """Reset the peak and return the bytes in use before the work."""
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        else:
            with contextlib.suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")
        return self.used()

    def peak(self) -> int:
        """Return the most bytes in use since `begin`; 0 where that is not known."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        return proc_bytes("self/status", "VmHWM") or 0

    def fits_double(self, base: int, peak: int) -> bool:
        """True if twice the work would stay inside the budget."""
        return self.budget is None or base + 2 * (peak - base) <= self.budget


def now() -> str:
    """Return the time in UTC. The wall clock may jump: nothing is computed from this."""
    return datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")


def _key(source: Task) -> Callable[[str], str]:
    """Return a function from a text to its key. A text without one votes for itself; grading will report the reason."""

    def key(text: str) -> str:
        try:
            return source.key(text)
        except Exception:  # a task may trip over any text
            return text

    return key
