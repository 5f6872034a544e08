"""From prompts to outputs: build a canvas, decode it, cut the texts and choose a hypothesis of each problem."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypedDict, get_args

import torch

from unmask.core import Canvas, Cost, Decoded, Denoiser, Frame, Session, Watch, decode
from unmask.core.decoder import resolve
from unmask.core.text import check_prompt
from unmask.errors import UnmaskError, check_known
from unmask.models import Model
from unmask.policies.choice import choose
from unmask.policies.likelihood import blind_likelihood
from unmask.runs import text as texts
from unmask.runs.checking import BatchJudge
from unmask.runs.progress import Progress, reporting
from unmask.runs.record import COUNTS
from unmask.runs.settings import Decoding, check_cost, check_integer
from unmask.runs.text import EncodedPrompt, Finish
from unmask.runs.trace import FORMAT, VERSION, Recorder, Trace

Key = Callable[[str], str]
DenoiserWrapper = Callable[[Denoiser], Denoiser]
Errors = Literal["raise", "return"]
BATCH = 16  # prompts decoded together by default


@dataclass(frozen=True)
class Hypothesis:
    """One of the final rows of a problem."""

    text: str
    score: float  # a search's total, or the sum of log p along a single path
    ids: tuple[int, ...]  # the whole row, prompt included
    verdict: float | None = None  # what the check says of the text: 1 passes, 0 fails; None without a check


@dataclass(frozen=True)
class Output:
    """The result of decoding a prompt: the chosen text, all final hypotheses, and the cost."""

    prompt: str
    text: str  # the chosen text, cut at end-of-text and stop strings; after `fill`, with the given text around it
    score: float  # score of the chosen hypothesis
    hypotheses: tuple[Hypothesis, ...]  # all final beams or samples
    chosen: int  # index of the chosen hypothesis
    cost: Cost
    settings: dict[str, Any]  # all that is needed to reproduce this
    finish_reason: Finish = "length"  # `stop`: end-of-text or a stop string ended the text; else its masks did
    trace: Trace | None = field(default=None, repr=False)  # if requested

    def __str__(self) -> str:
        return self.text

    @property
    def decoder(self) -> str:
        """The spec of the decoder, with every default written out."""
        return self.settings["decoder"]

    @property
    def seed(self) -> int:
        """The seed of all random draws."""
        return self.settings["seed"]

    @property
    def verdict(self) -> float | None:
        """The score that the check gives the chosen text: 1 passes, 0 fails; None without a check."""
        return self.hypotheses[self.chosen].verdict

    @property
    def distinct(self) -> int:
        """The number of different texts among the hypotheses; beams of a search may have become equal."""
        return len({row.text for row in self.hypotheses})

    def json(self) -> dict[str, Any]:
        """Return plain values without the trace, which has a file of its own."""
        return {
            "text": self.text,
            "score": self.score,
            "verdict": self.verdict,
            "hypotheses": [{"text": row.text, "score": row.score, "verdict": row.verdict} for row in self.hypotheses],
            "chosen": self.chosen,
            "distinct": self.distinct,
            "finish_reason": self.finish_reason,
            "cost": asdict(self.cost),
            "prompt": self.prompt,
            **self.settings,
        }

    def _repr_html_(self) -> str:
        groups: dict[str, list[int]] = {}  # indices of the hypotheses by their text
        for number, row in enumerate(self.hypotheses):
            groups.setdefault(row.text, []).append(number)
        rows = "".join(self._html_row(text, numbers) for text, numbers in groups.items())
        cost = f"{self.cost.forward_passes} forward passes ({self.cost.computed} computed), {self.cost.seconds:.2f} s"
        cost += f", seed {self.seed}; {self.distinct} of {len(self.hypotheses)} final texts are distinct"
        return (
            f"<p><code>{html.escape(self.decoder)}</code><br>{cost}</p>"
            f"<table><tr><th></th><th>hypotheses</th><th>score</th><th style='text-align:left'>text</th></tr>"
            f"{rows}</table>"
        )

    def _html_row(self, text: str, numbers: list[int]) -> str:
        score = max(self.hypotheses[number].score for number in numbers)
        return (
            f"<tr><td>{'chosen' if self.chosen in numbers else ''}</td><td>{len(numbers)}</td><td>{score:.3f}</td>"
            f"<td style='text-align:left'><pre>{html.escape(text)}</pre></td></tr>"
        )


@dataclass(frozen=True)
class Generation:
    """How a model answers prompts; `infill` has their gaps filled as well."""

    model: Model
    decoding: Decoding
    infill: bool = False
    key: Key = str  # texts with equal keys vote together
    task: str | None = None  # spec of the task that the prompts belong to, whose visible check may be asked for
    # Wraps the denoiser under the meter, as a server does that shares forward passes; `decoding.adapter` wraps it over.
    under_meter: DenoiserWrapper | None = None

    def __post_init__(self) -> None:
        self.decoding.denoiser(self.model)  # a cache that the model does not allow is refused before any work
        if self.model.denoiser.block_size and (name := blind_likelihood(self.decoding.decoder)):
            texts.warn_once(
                f"{self.model.name} is block-causal and sees no future: the likelihood {name} is future-masked there, "
                "and says little of a candidate; choose likelihood=interleaved, or the decoder search"
            )

    def read(self, prompt: Any, most: int | None = None) -> EncodedPrompt:
        """Encode a prompt and refuse it if it cannot be decoded, or may need more than `most` forward passes."""
        decoding, denoiser = self.decoding, self.model.denoiser
        encoded = texts.read_prompt(self.model, prompt, decoding.length, self.infill)
        check_prompt(encoded.ids, decoding.length, denoiser.mask_id, self.infill)
        if most is not None:
            masks, times = self._masks(encoded), 2 if decoding.guidance > 0 else 1
            chosen = resolve(decoding.decoder, denoiser.block_size, masks)
            check_cost(chosen, masks, most, times, positions=len(encoded.ids) + decoding.length)
        return encoded

    def try_read(self, prompt: Any, most: int | None = None) -> EncodedPrompt | UnmaskError:
        """Return the encoded prompt, or the reason why it cannot be decoded."""
        try:
            return self.read(prompt, most)
        except UnmaskError as error:
            return error

    def denoiser(self) -> Denoiser:
        """Return what the meter is put over, made anew for each batch: a cache keeps what it has seen."""
        denoiser = self.decoding.denoiser(self.model)
        return self.under_meter(denoiser) if self.under_meter else denoiser

    def canvas(self, prompts: Sequence[EncodedPrompt]) -> Canvas:
        """Return a canvas with one row per prompt, its answer masked."""
        denoiser, ids = self.model.denoiser, [prompt.ids for prompt in prompts]
        length, device, dtype = self.decoding.length, denoiser.device, denoiser.dtype
        return Canvas.blank(ids, length, denoiser.mask_id, infill=self.infill, device=device, dtype=dtype)

    def session(
        self, prompts: Sequence[EncodedPrompt], seed: int | Sequence[int] | None = None, listen: bool = False
    ) -> Session:
        """Return a session whose frames can be watched; all prompts need the same number of masks."""
        seed = self.decoding.seed if seed is None else seed
        adapt = self.decoding.adapter(self.model)
        canvas, judge = self.canvas(prompts), self._judge(prompts)
        return Session(self.decoding.decoder, self.denoiser(), canvas, seed, adapt, listen, judge)

    def _judge(self, prompts: Sequence[EncodedPrompt]) -> BatchJudge | None:
        """Return what checks the texts of these prompts, if there is a check."""
        if not self.decoding.check:
            return None
        starts = None if self.infill else [len(prompt.ids) for prompt in prompts]
        messages = [prompt.messages for prompt in prompts]
        own = {"messages": messages, "starts": starts, "text_of": lambda number, ids: self.text(prompts[number], ids)}
        return BatchJudge(self.model, self.decoding.check, self.task, **own)

    def outputs(
        self, prompts: Sequence[EncodedPrompt], traced: bool = False, watch: Watch | None = None
    ) -> list[Output]:
        """Decode the prompts as one batch."""
        canvas = self.canvas(prompts)
        pads = canvas.pad.tolist()
        recorders = [Recorder(canvas.rows(canvas.problem[i : i + 1])) for i in range(len(prompts) if traced else 0)]

        def see(numbers: list[int], frame: Frame) -> None:
            for problem, number in enumerate(numbers if traced else ()):
                recorders[number].see(frame, problem, pads[number])
            if watch:
                watch(numbers, frame)

        decoded = decode(
            self.decoding.decoder,
            self.denoiser(),
            canvas,
            self.decoding.seed,
            adapt=self.decoding.adapter(self.model),
            watch=see if traced or watch else None,
            listen=traced,
            judge=lambda numbers: self._judge([prompts[number] for number in numbers]),
        )
        return [
            self.output(prompt, result, recorders[i] if traced else None)
            for i, (prompt, result) in enumerate(zip(prompts, decoded, strict=True))
        ]

    def decode_apart(
        self, prompts: Mapping[int, EncodedPrompt], traced: bool = False, watch: Watch | None = None
    ) -> Iterator[dict[int, Output | UnmaskError]]:
        """Decode prompts together; halve what does not fit the memory, and after any other refusal decode each alone.

        Yield the outputs of prompts that were decoded together by their numbers, or the reason for a refusal.
        """
        if not prompts:
            return
        numbers = list(prompts)
        see = watch and (lambda some, frame: watch([numbers[each] for each in some], frame))
        try:
            outputs = self.outputs(list(prompts.values()), traced, see)
        except Exception as error:  # only the sentence is kept: the traceback holds the tensors
            full, sentence = out_of_memory(error), str(error)
            if not full and not isinstance(error, UnmaskError):
                raise
        else:
            yield dict(zip(numbers, outputs, strict=True))
            return
        torch.cuda.empty_cache()
        if len(prompts) == 1:
            sentence = "the memory does not hold this prompt, even alone" if full else sentence
            yield {numbers[0]: UnmaskError(sentence)}
            return
        size = (len(prompts) + 1) // 2 if full else 1
        for start in range(0, len(prompts), size):
            part = {number: prompts[number] for number in numbers[start : start + size]}
            yield from self.decode_apart(part, traced, watch)

    def partial(self, prompt: EncodedPrompt, ids: Sequence[int]) -> str:
        """Return the text of an unfinished row, with a sign for each mask."""
        return texts.partial_text(self.model, ids if self.infill else ids[len(prompt.ids) :])

    def settings(self, prompt: EncodedPrompt) -> dict[str, Any]:
        """Return all that is needed to reproduce an output, as plain values."""
        return {"model": self.model.name, **self.decoding.record(self._masks(prompt), self.model)}

    def _masks(self, prompt: EncodedPrompt) -> int:
        return prompt.ids.count(self.model.denoiser.mask_id) + self.decoding.length

    def trace_header(self, prompt: EncodedPrompt) -> dict[str, Any]:
        """Return the first line of a trace."""
        return {
            "format": FORMAT,
            "version": VERSION,
            **self.settings(prompt),
            "prompt": prompt.text,
            "ids": list(prompt.ids),
            "mask": self.model.denoiser.mask_id,
            "eos": sorted(self.model.eos),
            "dtype": str(self.model.denoiser.dtype).removeprefix("torch."),
        }

    def text(self, prompt: EncodedPrompt, ids: Sequence[int]) -> str:
        """Return the text of a finished row, cut at end-of-text and stop strings."""
        text_of = texts.filled_text if self.infill else texts.answer_text
        return text_of(self.model, prompt, ids, self.decoding.stop)

    def output(self, prompt: EncodedPrompt, decoded: Decoded, recorder: Recorder | None = None) -> Output:
        """Cut the texts of the final rows and choose one of them."""
        pad = int(decoded.canvas.pad[0])
        verdicts = decoded.verdicts or [None] * len(decoded.score)
        rows = [
            Hypothesis(self.text(prompt, ids), score, tuple(ids), verdict)
            for ids, score, verdict in zip(
                decoded.canvas.tokens[:, pad:].tolist(), decoded.score, verdicts, strict=True
            )
        ]
        best_verdict = max(decoded.verdicts) if decoded.verdicts else None
        able = [number for number, row in enumerate(rows) if row.verdict == best_verdict]
        keys, scores = [self.key(rows[number].text) for number in able], [rows[number].score for number in able]
        chosen = able[choose(self.decoding.decoder.choice, scores, keys)]
        best = rows[chosen]
        finish = texts.finish_reason(self.model, prompt, best.ids, self.decoding.stop)
        settings = self.settings(prompt)
        output = Output(prompt.text, best.text, best.score, tuple(rows), chosen, decoded.cost, settings, finish)
        return replace(output, trace=self._trace(prompt, recorder, output)) if recorder else output

    def _trace(self, prompt: EncodedPrompt, recorder: Recorder, output: Output) -> Trace:
        words = {str(token): self.model.text.decode([token]) for token in sorted(recorder.words)}
        measured = asdict(output.cost)  # what is left of it differs from run to run
        cost = {name: measured.pop(name) for name in COUNTS}
        rows = [row.text for row in output.hypotheses]
        end = {"chosen": output.chosen, "texts": rows, "words": words, "cost": cost, "measured": measured}
        return Trace(self.trace_header(prompt), recorder.steps, end)


class BatchOptions(TypedDict, total=False):
    """The keyword arguments of `in_batches` that a user may give."""

    batch: int
    watch: Watch | None
    errors: Errors
    progress: Progress


def in_batches(
    generation: Generation,
    prompts: Sequence[EncodedPrompt | UnmaskError],
    batch: int = BATCH,
    *,
    traced: bool = False,
    watch: Watch | None = None,
    errors: Errors = "raise",
    progress: Progress = False,
) -> list[Output | UnmaskError]:
    """Decode prompts in batches, on which results do not depend. A refusal is raised or takes its output's place."""
    check_integer(1, batch=batch)
    check_known(get_args(Errors), errors=str(errors))
    if not prompts:
        raise UnmaskError("there is nothing to decode: give at least one prompt")
    outcomes: list[Any] = [_named(each, number, len(prompts), errors) for number, each in enumerate(prompts)]
    able = [number for number, each in enumerate(outcomes) if isinstance(each, EncodedPrompt)]
    with reporting(progress, len(prompts)) as report:
        for start in range(0, len(able), batch):
            together = {number: outcomes[number] for number in able[start : start + batch]}
            for outputs in generation.decode_apart(together, traced, watch):
                for number, output in outputs.items():
                    outcomes[number] = _named(output, number, len(prompts), errors)
            report(len(prompts) - len(able) + min(start + batch, len(able)))
    return outcomes


def _named(outcome: Any, number: int, of: int, errors: Errors) -> Any:
    """Put the index of its prompt before a refusal, and raise it unless refusals are returned."""
    if not isinstance(outcome, UnmaskError):
        return outcome
    named = UnmaskError(f"prompt {number}: {outcome}") if of > 1 else outcome
    if errors == "raise":
        raise named
    return named


def out_of_memory(error: BaseException) -> bool:
    """True for an error by which a GPU or a CPU says that its memory is full."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "allocate memory" in str(error)  # on a CPU
