"""The updates of one request: its stable text piece by piece, drafts or a trace if asked for, and the answer."""

from __future__ import annotations

from collections.abc import Sequence

from unmask.core import Decoded, Frame
from unmask.core.text import cut_at_stop, end_of_text
from unmask.models import Model
from unmask.models.checkpoints.tokenizer import HALF
from unmask.runs.generation import Generation
from unmask.runs.trace import Recorder
from unmask.serve.request import Completed, Request, Update


class RequestStream:
    """Follows the frames of one request.

    Text is stable, and sent before the end, where the decoder only commits: it is what all hypotheses share before
    their first mask, in whole characters, up to end-of-text or a stop string.
    """

    def __init__(self, model: Model, request: Request):
        self.model, self.request = model, request
        self.generation = Generation(model, request.decoding, request.infill)
        self.recorder: Recorder | None = None
        self._sent = ""
        self._known: set[int] = set()  # tokens whose texts were sent with the trace

    def begin(self) -> Update | None:
        """Return the header of the trace, if one is shown."""
        if self.request.show != "trace":
            return None
        self.recorder = Recorder(self.generation.canvas([self.request.prompt]))
        return Update(0, line=self.generation.trace_header(self.request.prompt) | {"words": self._new_words()})

    def see(self, frame: Frame) -> Update | None:
        """Return what a frame adds, if that is anything."""
        if self.request.show is None:
            return None
        text = ""
        if self.request.decoding.decoder.writer.commits_only:
            text = self._unsent(self.stable_text(frame.canvas.tokens.tolist()))
        if self.request.show == "drafts":
            return Update(frame.step, text, draft=self._draft(frame))
        if self.recorder is not None:
            self.recorder.see(frame, 0, 0)
            return Update(frame.step, text, line=self.recorder.steps[-1] | {"words": self._new_words()})
        return Update(frame.step, text) if text else None

    def end(self, decoded: Decoded, step: int) -> Update:
        """Return the last update, with the rest of the text and the answer."""
        answer = self._answer(decoded)
        draft = answer.text if self.request.show == "drafts" else None
        return Update(step, self._unsent(answer.text), draft=draft, answer=answer)

    def stable_text(self, rows: Sequence[Sequence[int]]) -> str:
        request, text, at = self.request, "", 0
        parts: tuple[str | int, ...] = (*request.prompt.parts, request.decoding.length)
        if request.suffix:
            parts = request.prompt.parts[:-1]
        if not request.infill:
            parts, at = (request.decoding.length,), len(request.prompt.ids)
        shared = self._shared(rows)
        for number, part in enumerate(parts):
            if isinstance(part, str):
                text, at = text + part, at + len(self.model.text.encode(part))
                continue
            piece, complete = self._gap(shared[at : at + part], part)
            text, at = text + (self._before_stop(piece, complete) if number == len(parts) - 1 else piece), at + part
            if not complete:
                break
        return text[len(request.given) :]

    def _shared(self, rows: Sequence[Sequence[int]]) -> list[int]:
        """Return the ids that all rows begin with, before any mask."""
        mask, shared = self.model.denoiser.mask_id, list[int]()
        for ids in zip(*rows, strict=True):
            if ids[0] == mask or len({*ids}) > 1:
                break
            shared.append(ids[0])
        return shared

    def _gap(self, ids: Sequence[int], size: int) -> tuple[str, bool]:
        """Return the text of a gap so far, and whether it is complete."""
        end = end_of_text(ids, self.model.eos)
        text, complete = self.model.text.decode(list(ids[:end])), end < len(ids) or len(ids) == size
        return (text if complete else text.rstrip(HALF)), complete

    def _before_stop(self, text: str, complete: bool) -> str:
        """Cut before a stop string, and before the beginning of one if more text may follow."""
        stop = self.request.decoding.stop
        text = cut_at_stop(text, stop)
        if complete:
            return text
        begun = (size for word in stop for size in range(1, len(word)) if text.endswith(word[:size]))
        return text[: len(text) - max(begun, default=0)]

    def _unsent(self, text: str) -> str:
        """Return what follows the text that was sent before."""
        if not text.startswith(self._sent):
            return ""
        piece, self._sent = text[len(self._sent) :], text
        return piece

    def _draft(self, frame: Frame) -> str:
        best = int(frame.score.argmax())
        return self.request.answer_in(self.generation.partial(self.request.prompt, frame.canvas.tokens[best].tolist()))

    def _new_words(self) -> dict[str, str]:
        assert self.recorder is not None
        new = sorted(self.recorder.words - self._known)
        self._known.update(new)
        return {str(token): self.model.text.decode([token]) for token in new}

    def _answer(self, decoded: Decoded) -> Completed:
        request, canvas = self.request, decoded.canvas
        output = self.generation.output(request.prompt, decoded)
        ids, pad = output.hypotheses[output.chosen].ids, int(canvas.pad[output.chosen])
        text, finish = request.answer_in(output.text), output.finish_reason
        if request.infill:
            order = canvas.order[output.chosen, pad:].tolist()
            places, finish = [place for place, step in enumerate(order) if step], "stop"
        else:
            first = len(request.prompt.ids)
            places = range(first, first + self._answer_size(ids[first:], text))
        logp = canvas.logp[output.chosen, pad:].tolist()
        prompt_tokens = sum(token != self.model.denoiser.mask_id for token in request.prompt.ids)
        written = tuple(ids[place] for place in places)
        return Completed(output, text, finish, prompt_tokens, written, tuple(logp[place] for place in places))

    def _answer_size(self, ids: Sequence[int], text: str) -> int:
        """Return how many tokens the text has: those before end-of-text, or as many as reach a stop string."""
        end, decode = end_of_text(ids, self.model.eos), self.model.text.decode
        if len(decode(list(ids[:end]))) <= len(text):
            return end
        return next(size for size in range(end + 1) if len(decode(list(ids[:size]))) >= len(text))
