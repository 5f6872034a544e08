"""From prompts to outputs: build a canvas, decode it, cut the texts, choose a row of each problem."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from unmask.core import Canvas, Decoded, Denoiser, Frame, Watch, block_size, decode, stream
from unmask.models import Model
from unmask.policies.choice import choose
from unmask.policies.likelihood import blind_likelihood
from unmask.runs.decoding import Decoding
from unmask.runs.output import FinalRow, Output, answer_text, filled_text, finish_reason, partial_text
from unmask.runs.prompt import EncodedPrompt
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
        if block_size(self.model.denoiser) and (name := blind_likelihood(self.decoding.decoder)):
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
            FinalRow(text_of(self.model, prompt, ids, self.decoding.stop), score, tuple(ids))
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
        texts = [row.text for row in output.rows]
        cost = asdict(output.cost)
        measured = {
            name: cost.pop(name) for name in ("calls", "seconds", "memory", "batch_seconds")
        }  # differ from run to run
        end = {"chosen": output.chosen, "texts": texts, "words": words, "cost": cost, "measured": measured}
        return Trace(self.trace_header(prompt), recorder.steps, end)


@cache
def say_once(sentence: str) -> None:
    log.warning(sentence)
