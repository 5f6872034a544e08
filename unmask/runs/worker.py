"""What an engine is given and what it returns. Only plain values travel: specs and prompts, never objects. How many problems are decoded together: as many as fit the memory, while larger batches save time per problem.

Results do not depend on it; time and memory do. A worker holds a model, takes jobs and answers in plain values. It is the same in every engine."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch

import unmask.tasks  # noqa: F401  registers the tasks
from unmask import environment
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.models.checkpoints.fingerprint import local_fingerprint
from unmask.models.devices import free, proc_bytes
from unmask.runs.generation import Generation
from unmask.runs.header import arithmetic
from unmask.runs.output import Output
from unmask.runs.prompts import EncodedPrompt, read_prompt
from unmask.runs.record import Cell, finite
from unmask.runs.settings import Decoding, Placement
from unmask.tasks import Task, task
from unmask.version import __version__


@dataclass(frozen=True)
class PosedProblem:
    """A problem as a worker sees it."""

    id: str
    messages: tuple[dict[str, str], ...]


@dataclass(frozen=True)
class Job:
    """Problems of one cell, seed and sample."""

    cell: Cell
    seed: int  # of the run
    sample: int
    decoding: Decoding  # with the sample's own seed
    placement: Placement
    traced: bool
    problems: tuple[PosedProblem, ...]

    def part(self, start: int, stop: int) -> Job:
        return replace(self, problems=self.problems[start:stop])

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"cell": list(self.cell), "decoding": self.decoding.to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Job:
        problems = tuple(PosedProblem(each["id"], tuple(each["messages"])) for each in values["problems"])
        decoding, placement = Decoding.from_dict(values["decoding"]), Placement(**values["placement"])
        parts = {"cell": Cell(*values["cell"]), "decoding": decoding, "placement": placement, "problems": problems}
        return cls(**values | parts)

    @property
    def shape(self) -> tuple[str, str, int]:
        """What decides how many problems fit together."""
        return (self.cell.model, self.cell.decoder, self.cell.length)


@dataclass(frozen=True)
class Answer:
    """The answer to a problem, not graded yet."""

    problem: str
    prompt: str
    text: str
    likelihood: float | None
    cost: dict[str, int]
    measured: dict[str, Any]
    error: str | None = None
    trace: str | None = None  # the file's text, if requested
    marked: str | None = None  # the text uncut, special tokens written out, as `d1` reads it


@dataclass(frozen=True)
class Done:
    """The result of a job."""

    answers: tuple[Answer, ...]  # in the job's order
    fitted: int  # problems that went through together
    roomy: bool  # whether twice as many would fit the memory
    seconds: float
    checkpoint: dict[str, Any] | None = None  # the digest of the model that answered

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Done:
        return cls(**{**values, "answers": tuple(Answer(**answer) for answer in values["answers"])})


@runtime_checkable
class Engine(Protocol):
    def run(self, jobs: Iterable[Job], batches: Batches) -> Generator[tuple[Job, Done], None, None]:
        """Results as they come, each job cut into batches. Closing the iterator ends the workers."""
        ...


def failure(problem: PosedProblem, sentence: str, prompt: str = "", **measured: Any) -> Answer:
    return Answer(problem.id, prompt, "", None, {}, measured, error=sentence)


FIRST, MOST = 4, 256
SHARE = 0.8  # of the free memory, used unless a budget is given
QUICKER = 0.95  # a doubled batch pays if it brings the time per problem down to this share


@dataclass
class Fit:
    size: int
    most: int = MOST
    pace: float | None = None  # seconds per problem at half this size


class Batches:
    """Sizes by a job's shape: start small, double while that pays, never return to a size that did not fit."""

    def __init__(self, fixed: int | None = None):
        self.fixed = fixed
        self._fits: dict[tuple[str, str, int], Fit] = {}

    def size(self, shape: tuple[str, str, int]) -> int:
        return self._fits.setdefault(shape, Fit(self.fixed or FIRST)).size

    def saw(self, shape: tuple[str, str, int], tried: int, fitted: int, roomy: bool, seconds: float) -> None:
        fit = self._fits[shape]
        if fitted < tried:
            fit.size = fit.most = min(fit.most, fitted)
        elif self.fixed is None and tried == fit.size < fit.most:
            self._grow(fit, roomy, seconds / tried)

    def _grow(self, fit: Fit, roomy: bool, pace: float) -> None:
        if fit.pace is not None and pace > QUICKER * fit.pace:
            fit.most = fit.size  # the last doubling did not pay, so the next would not
        elif roomy:
            fit.pace, fit.size = pace, min(2 * fit.size, fit.most)


class Gauge:
    """Memory in use on a device, against a budget."""

    def __init__(self, device: torch.device, budget: int | None, share: float = 1.0):
        self.device = device
        unused = free(device)
        self.budget = budget if unused is None or budget is not None else self.used() + int(SHARE * share * unused)

    def used(self) -> int:
        if self.device.type == "cuda":
            return torch.cuda.memory_allocated(self.device)
        return proc_bytes("self/status", "VmRSS") or 0

    def begin(self) -> int:
        """Reset the peak; the memory in use before the work."""
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        else:
            with contextlib.suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")
        return self.used()

    def peak(self) -> int:
        """0 where it is not known."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        return proc_bytes("self/status", "VmHWM") or 0

    def roomy(self, base: int, peak: int) -> bool:
        """Whether twice the work would stay inside the budget."""
        return self.budget is None or base + 2 * (peak - base) <= self.budget


def out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "allocate memory" in str(error)  # on a CPU


class Attempt(NamedTuple):
    output: Output | str  # or a sentence that says why there is none
    batch: int  # prompts decoded together
    seconds: float  # its share of the batch's


class Worker:
    def __init__(self, share: float = 1.0):
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.share = share  # of its machine's free memory
        self._held: tuple[tuple[str, Placement], Model, Gauge, dict[str, Any] | None] | None = None

    def facts(self) -> dict[str, Any]:
        facts = {"name": self.name, "unmask": __version__, "deterministic": environment.deterministic()}
        return facts | {"arithmetic": arithmetic()}

    def run(self, job: Job) -> Done:
        torch.set_float32_matmul_precision(job.placement.precision)
        model, gauge, digest = self._model(job)
        generation = Generation(model, job.decoding, key=_key(task.make(job.cell.task)))
        base, began = gauge.begin(), time.perf_counter()
        read = [_read(model, problem, job.cell.length) for problem in job.problems]
        prompts = [prompt for prompt in read if isinstance(prompt, EncodedPrompt)]
        attempts = self._decode(generation, prompts, job.traced)
        peak, seconds = gauge.peak(), time.perf_counter() - began
        left = iter(attempts)
        answers = [
            self._answer(model, problem, prompt, next(left), peak)
            if isinstance(prompt, EncodedPrompt)
            else failure(problem, prompt, worker=self.name)
            for problem, prompt in zip(job.problems, read, strict=True)
        ]
        largest = max((attempt.batch for attempt in attempts), default=0)
        fitted = len(job.problems) if largest == len(prompts) else largest
        return Done(tuple(answers), fitted, gauge.roomy(base, peak), seconds, digest)

    def _model(self, job: Job) -> tuple[Model, Gauge, dict[str, Any] | None]:
        """One model at a time: the last job's is freed before this one's is loaded."""
        wanted = (job.cell.model, job.placement)
        if self._held is None or self._held[0] != wanted:
            self._held = None
            torch.cuda.empty_cache()
            model = job.placement.load(job.cell.model)
            gauge = Gauge(model.denoiser.device, job.placement.budget, self.share)
            self._held = (wanted, model, gauge, local_fingerprint(job.cell.model))
        return self._held[1:]

    def _decode(self, generation: Generation, prompts: Sequence[EncodedPrompt], traced: bool) -> list[Attempt]:
        """Halves a batch that does not fit the memory; after any other refusal decodes each prompt alone."""
        if not prompts:
            return []
        began = time.perf_counter()
        try:
            outputs = generation.outputs(prompts, traced)
            seconds = (time.perf_counter() - began) / len(prompts)
            return [Attempt(output, len(prompts), seconds) for output in outputs]
        except Exception as error:  # only the sentence is kept: the traceback holds the tensors
            full, sentence = out_of_memory(error), str(error)
            if not full and not isinstance(error, UnmaskError):
                raise
        torch.cuda.empty_cache()
        if len(prompts) == 1:
            sentence = "the memory does not hold this problem, even alone" if full else sentence
            return [Attempt(sentence, 1, time.perf_counter() - began)]
        size = (len(prompts) + 1) // 2 if full else 1
        parts = [prompts[start : start + size] for start in range(0, len(prompts), size)]
        return [attempt for part in parts for attempt in self._decode(generation, part, traced)]

    def _answer(
        self, model: Model, problem: PosedProblem, prompt: EncodedPrompt, attempt: Attempt, peak: int
    ) -> Answer:
        output, batch, seconds = attempt
        measured = {"seconds": round(seconds, 6), "memory": peak, "worker": self.name, "batch": batch}
        if isinstance(output, str):
            return failure(problem, output, prompt.text, **measured)
        cost = {
            "forward_passes": output.cost.forward_passes,
            "computed": output.cost.computed,
            "positions": output.cost.positions,
        }
        trace = "".join(output.trace.lines()) if output.trace else None
        measured["calls"] = output.cost.calls
        marked = model.text.decode(output.hypotheses[output.chosen].ids[len(prompt.ids) :])
        score = finite(output.score)
        return Answer(problem.id, output.prompt, output.text, score, cost, measured, trace=trace, marked=marked)


def _key(source: Task) -> Callable[[str], str]:
    """A text without a key votes for itself; grading will report what is wrong with it."""

    def key(text: str) -> str:
        try:
            return source.key(text)
        except Exception:  # a task may trip over any text
            return text

    return key


def _read(model: Model, problem: PosedProblem, length: int) -> EncodedPrompt | str:
    """The prompt as tokens, or a sentence that says why it cannot be decoded."""
    try:
        prompt = read_prompt(model, list(problem.messages), length)
    except UnmaskError as error:
        return str(error)
    if model.denoiser.mask_id in prompt.ids or not prompt.ids:
        return "the prompt is empty or holds the mask token"
    return prompt
