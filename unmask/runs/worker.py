"""The one who decodes: holds a model, takes jobs, answers in plain values. The same in every engine."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

import unmask.decoders
import unmask.tasks  # noqa: F401  the rooms register what they hold
from unmask import environment
from unmask.core import decoder, reseed
from unmask.errors import UnmaskError
from unmask.models import Model, load
from unmask.runs.batching import Gauge, out_of_memory
from unmask.runs.generation import Generation
from unmask.runs.job import Answer, Asked, Done, Job, failure
from unmask.runs.output import Output
from unmask.runs.prompt import Prompt, read_prompt
from unmask.runs.record import finite
from unmask.runs.settings import Settings
from unmask.tasks import Task, task
from unmask.version import __version__


@dataclass(frozen=True)
class Batch:
    """Problems that went through the model together, or the one that could not."""

    outputs: list[Output]
    error: str | None
    size: int
    seconds: float


class Worker:
    def __init__(self, share: float = 1.0):
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.share = share  # of its machine's free memory
        self._held: tuple[tuple[str, str, str, bool], Model, Gauge] | None = None

    def facts(self) -> dict[str, Any]:
        return {"name": self.name, "unmask": __version__, "deterministic": environment.deterministic()}

    def run(self, job: Job) -> Done:
        torch.set_float32_matmul_precision(job.precision)
        model, gauge = self._model(job)
        generation = Generation(model, _settings(job), key=_key(task.make(job.task)))
        base, began = gauge.begin(), time.perf_counter()
        read = [_read(model, problem, job.length) for problem in job.problems]
        prompts = [prompt for prompt in read if isinstance(prompt, Prompt)]
        batches = self._decode(generation, prompts, job.traced)
        peak, seconds = gauge.peak(), time.perf_counter() - began
        results = [(batch, place) for batch in batches for place in range(batch.size)]
        came = iter(results)
        answers = [
            self._answer(problem, prompt, *next(came), peak)
            if isinstance(prompt, Prompt)
            else failure(problem, prompt, worker=self.name)
            for problem, prompt in zip(job.problems, read, strict=True)
        ]
        fitted = len(job.problems) if len(batches) < 2 else max(batch.size for batch in batches)
        return Done(tuple(answers), fitted, gauge.roomy(base, peak), seconds)

    def _model(self, job: Job) -> tuple[Model, Gauge]:
        """One at a time: the last job's model makes room for this one's."""
        wanted = (job.model, job.device, job.dtype, job.compiled)
        if self._held is None or self._held[0] != wanted:
            self._held = None
            _tidy()
            model = load(job.model, job.device, job.dtype, compiled=job.compiled)
            self._held = (wanted, model, Gauge(model.denoiser.device, job.memory, self.share))
        return self._held[1], self._held[2]

    def _decode(self, generation: Generation, prompts: Sequence[Prompt], traced: bool) -> list[Batch]:
        """Halved where the memory does not hold them, alone where something else goes wrong with one of them."""
        if not prompts:
            return []
        began = time.perf_counter()
        try:
            outputs = generation.outputs(prompts, traced)
            return [Batch(outputs, None, len(outputs), time.perf_counter() - began)]
        except Exception as error:  # only the sentence is kept: the traceback holds the tensors
            full, said = out_of_memory(error), str(error)
            if not full and not isinstance(error, UnmaskError):
                raise
        _tidy()
        if len(prompts) == 1:
            sentence = "the memory does not hold this problem, even alone" if full else said
            return [Batch([], sentence, 1, time.perf_counter() - began)]
        size = (len(prompts) + 1) // 2 if full else 1
        parts = [prompts[start : start + size] for start in range(0, len(prompts), size)]
        return [batch for part in parts for batch in self._decode(generation, part, traced)]

    def _answer(self, problem: Asked, prompt: Prompt, batch: Batch, place: int, peak: int) -> Answer:
        measured = {
            "seconds": round(batch.seconds / batch.size, 6),
            "memory": peak,
            "worker": self.name,
            "batch": batch.size,
        }
        if batch.error is not None:
            return failure(problem, batch.error, prompt.text, **measured)
        output = batch.outputs[place]
        cost = {"rows": output.cost.rows, "distinct": output.cost.distinct, "positions": output.cost.positions}
        trace = "".join(output.trace.lines()) if output.trace else None
        measured["calls"] = output.cost.calls
        return Answer(
            problem.id, output.prompt, output.text, finite(output.score), cost, measured, error=None, trace=trace
        )


def _settings(job: Job) -> Settings:
    made, seed = decoder.make(job.decoder), reseed(job.seed, job.sample)
    return Settings(made, job.length, seed, job.guidance, job.suppress, job.early_end, job.stop, job.cache)


def _key(made: Task) -> Callable[[str], str]:
    """A text whose key cannot be had votes for itself; grading will say what is wrong with it."""

    def key(text: str) -> str:
        try:
            return made.key(text)
        except Exception:  # whatever a reader of answers stumbles over
            return text

    return key


def _read(model: Model, problem: Asked, length: int) -> Prompt | str:
    """The prompt as tokens, or the sentence that says why it cannot be asked."""
    try:
        prompt = read_prompt(model, list(problem.messages))
    except UnmaskError as error:
        return str(error)
    need, context = len(prompt.ids) + length, model.denoiser.context
    if need > context:
        return f"prompt and answer need {need} positions, the model takes {context}"
    if model.denoiser.mask_id in prompt.ids or not prompt.ids:
        return "the prompt is empty or holds the mask token"
    return prompt


def _tidy() -> None:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
