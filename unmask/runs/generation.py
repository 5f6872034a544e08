"""From prompts to outputs: build a canvas, decode it, cut the texts, choose a row of each problem. Answers to many prompts: a prompt that cannot be answered is named by its index, and need not stop the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Literal, get_args

from unmask.core import Canvas, Decoded, Denoiser, Frame, Watch, decode, stream
from unmask.core.decoder import resolve
from unmask.errors import UnmaskError, nearest
from unmask.models import Model
from unmask.policies.choice import choose
from unmask.policies.likelihood import blind_likelihood
from unmask.runs.output import Hypothesis, Output, answer_text, filled_text, finish_reason, partial_text
from unmask.runs.progress import Progress, telling
from unmask.runs.prompts import EncodedPrompt, read_prompt
from unmask.runs.settings import Decoding, check_cost
from unmask.runs.trace import FORMAT, VERSION, Recorder, Trace

Key = Callable[[str], str]
Around = Callable[[Denoiser], Denoiser]
log = logging.getLogger("unmask")


@dataclass(frozen=True)
class Generation:
    """How a model answers prompts; `infill` has their gaps filled as well."""

    model: Model
    decoding: Decoding
    infill: bool = False
    key: Key = str  # rows with equal keys vote together
    around: Around | None = None  # wraps the denoiser under the meter, as a server does that shares forwards

    def __post_init__(self) -> None:
        self.denoiser()  # a model without the chosen cache is refused before any work
        if self.model.denoiser.block_size and (name := blind_likelihood(self.decoding.decoder)):
            say_once(
                f"{self.model.name} is block-causal and sees no future: the likelihood {name} is future-masked there, "
                "and says little of a candidate; choose likelihood=interleaved, or the decoder search"
            )

    def denoiser(self) -> Denoiser:
        denoiser = self.decoding.denoiser(self.model)
        return self.around(denoiser) if self.around else denoiser

    def canvas(self, prompts: Sequence[EncodedPrompt]) -> Canvas:
        denoiser, ids = self.model.denoiser, [prompt.ids for prompt in prompts]
        length, device, dtype = self.decoding.length, denoiser.device, denoiser.dtype
        return Canvas.blank(ids, length, denoiser.mask_id, infill=self.infill, device=device, dtype=dtype)

    def outputs(
        self, prompts: Sequence[EncodedPrompt], traced: bool = False, watch: Watch | None = None, listen: bool = False
    ) -> list[Output]:
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
            listen=traced or listen,
        )
        return [
            self.output(prompt, result, recorders[i] if traced else None)
            for i, (prompt, result) in enumerate(zip(prompts, decoded, strict=True))
        ]

    def frames(self, prompts: Sequence[EncodedPrompt]) -> Iterator[Frame]:
        """Frames as they come; all prompts need the same number of masks."""
        canvas = self.canvas(prompts)
        denoiser, adapt = self.denoiser(), self.decoding.adapter(self.model)
        return stream(self.decoding.decoder, denoiser, canvas, self.decoding.seed, adapt=adapt)

    def partial(self, prompt: EncodedPrompt, ids: Sequence[int]) -> str:
        """An unfinished row as its reader should see it."""
        return partial_text(self.model, ids if self.infill else ids[len(prompt.ids) :])

    def settings(self, prompt: EncodedPrompt) -> dict[str, Any]:
        """All that is needed to reproduce an output, as plain values."""
        masks = prompt.ids.count(self.model.denoiser.mask_id) + self.decoding.length
        return {"model": self.model.name, **self.decoding.record(masks, self.model)}

    def trace_header(self, prompt: EncodedPrompt) -> dict[str, Any]:
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

    def output(self, prompt: EncodedPrompt, decoded: Decoded, recorder: Recorder | None = None) -> Output:
        text_of = filled_text if self.infill else answer_text
        pad = int(decoded.canvas.pad[0])
        rows = [
            Hypothesis(text_of(self.model, prompt, ids, self.decoding.stop), score, tuple(ids))
            for ids, score in zip(decoded.canvas.tokens[:, pad:].tolist(), decoded.score, strict=True)
        ]
        chosen = choose(self.decoding.decoder.choice, decoded.score, [self.key(row.text) for row in rows])
        settings = self.settings(prompt)
        best, spec, seed = rows[chosen], settings["decoder"], settings["seed"]
        finish = finish_reason(self.model, prompt, best.ids, self.decoding.stop)
        output = Output(
            prompt.text, best.text, best.score, tuple(rows), chosen, decoded.cost, spec, seed, settings, finish
        )
        return replace(output, trace=self._trace(prompt, recorder, output)) if recorder else output

    def _trace(self, prompt: EncodedPrompt, recorder: Recorder, output: Output) -> Trace:
        words = {str(token): self.model.text.decode([token]) for token in sorted(recorder.words)}
        texts = [row.text for row in output.hypotheses]
        cost = asdict(output.cost)
        measured = {
            name: cost.pop(name) for name in ("calls", "seconds", "memory", "batch_seconds")
        }  # differ from run to run
        end = {"chosen": output.chosen, "texts": texts, "words": words, "cost": cost, "measured": measured}
        return Trace(self.trace_header(prompt), recorder.steps, end)


@cache
def say_once(sentence: str) -> None:
    log.warning(sentence)


Errors = Literal["raise", "return"]


def read_prompts(generation: Generation, prompts: Sequence[Any], most: int) -> list[EncodedPrompt | UnmaskError]:
    """Each as tokens, or the reason why it cannot be answered; each may cost `most` rows."""
    return [_read(generation, prompt, most) for prompt in prompts]


def _read(generation: Generation, prompt: Any, most: int) -> EncodedPrompt | UnmaskError:
    decoding, denoiser = generation.decoding, generation.model.denoiser
    try:
        encoded = read_prompt(generation.model, prompt, decoding.length, generation.infill)
        masks = decoding.length + (encoded.ids.count(denoiser.mask_id) if generation.infill else 0)
        if masks > 0:
            chosen, width = resolve(decoding.decoder, denoiser.block_size, masks), len(encoded.ids) + decoding.length
            check_cost(chosen, masks, most, 2 if decoding.guidance > 0 else 1, positions=width)
    except UnmaskError as error:
        return error
    return encoded


def in_batches(
    generation: Generation,
    prompts: Sequence[EncodedPrompt | UnmaskError],
    batch: int,
    *,
    traced: bool = False,
    watch: Watch | None = None,
    errors: Errors = "raise",
    progress: Progress = False,
) -> list[Output | UnmaskError]:
    """Results do not depend on `batch`; memory does. A refusal is raised, or takes the place of its output."""
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise UnmaskError(f"batch={batch!r} does not work: choose 1 or more")
    if errors not in get_args(Errors):
        raise UnmaskError(f"errors={errors!r} does not work: {nearest(str(errors), get_args(Errors))}")
    if not prompts:
        raise UnmaskError("there is nothing to decode: give at least one prompt")
    outcomes: list[Any] = [_named(each, number, len(prompts)) for number, each in enumerate(prompts)]
    refused = [each for each in outcomes if isinstance(each, UnmaskError)]
    if refused and errors == "raise":
        raise refused[0]
    able = [number for number, each in enumerate(outcomes) if isinstance(each, EncodedPrompt)]
    with telling(progress, len(prompts)) as tell:
        for start in range(0, len(able), batch):
            numbers = able[start : start + batch]
            decoded = _decode(generation, outcomes, numbers, traced, watch, errors)
            for number, outcome in zip(numbers, decoded, strict=True):
                outcomes[number] = outcome
            tell(len(refused) + start + len(numbers))
    return outcomes


def _decode(
    generation: Generation,
    prompts: Sequence[Any],
    numbers: list[int],
    traced: bool,
    watch: Watch | None,
    errors: Errors,
) -> list[Output | UnmaskError]:
    """Each prompt alone where together they are refused, so that the rest is answered."""

    def see(some: list[int], frame: Frame) -> None:
        assert watch is not None
        watch([numbers[each] for each in some], frame)

    try:
        return [*generation.outputs([prompts[number] for number in numbers], traced, see if watch else None)]
    except UnmaskError as error:
        if errors == "raise":
            raise
        if len(numbers) == 1:
            return [_named(error, numbers[0], len(prompts))]
    return [each for number in numbers for each in _decode(generation, prompts, [number], traced, watch, errors)]


def _named(outcome: Any, number: int, of: int) -> Any:
    return UnmaskError(f"prompt {number}: {outcome}") if isinstance(outcome, UnmaskError) and of > 1 else outcome
