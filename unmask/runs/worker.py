"""A worker holds a model, takes jobs and answers in plain values. It is the same in every engine."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

import unmask.tasks  # noqa: F401  registers the tasks
from unmask import environment
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.models.digest import checkpoint
from unmask.runs.arithmetic import arithmetic
from unmask.runs.batching import Gauge, out_of_memory
from unmask.runs.generation import Generation
from unmask.runs.job import Answer, Done, Job, PosedProblem, failure
from unmask.runs.output import Output
from unmask.runs.placement import Placement
from unmask.runs.prompt import EncodedPrompt, read_prompt
from unmask.runs.record import finite
from unmask.tasks import Task, task
from unmask.version import __version__


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
            self._held = (wanted, model, gauge, checkpoint(job.cell.model))
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
        cost = {"rows": output.cost.rows, "distinct": output.cost.distinct, "positions": output.cost.positions}
        trace = "".join(output.trace.lines()) if output.trace else None
        measured["calls"] = output.cost.calls
        marked = model.text.decode(output.rows[output.chosen].ids[len(prompt.ids) :])
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
