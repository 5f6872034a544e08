"""Who is told what an engine does, such as metrics and logs. Text of an unfinished answer that is certain: what all live rows share, in whole characters, up to its end. What a request's reader is told: an update per frame, and the answer at the end."""

from __future__ import annotations

from collections.abc import Sequence

from unmask.core import Decoded, Frame
from unmask.models import Model
from unmask.models.checkpoints.tokenizer import HALF
from unmask.runs.generation import Generation
from unmask.runs.trace import Recorder
from unmask.serve.queue import Ticket
from unmask.serve.request import Completed, Finish, Request, Update


class Watcher:
    """Takes no notice; others override what they care for."""

    def answered(self, rows: int, requests: int) -> None:
        """A forward."""

    def ended(self, ticket: Ticket, outcome: str, answer: Completed | None) -> None:
        """A request: `done`, `cancelled`, or the code of its refusal."""


class Watchers(Watcher):
    """Several as one."""

    def __init__(self, *watchers: Watcher):
        self.watchers = watchers

    def answered(self, rows: int, requests: int) -> None:
        for watcher in self.watchers:
            watcher.answered(rows, requests)

    def ended(self, ticket: Ticket, outcome: str, answer: Completed | None) -> None:
        for watcher in self.watchers:
            watcher.ended(ticket, outcome, answer)


class Committed:
    """Follows the frames of one request and hands out its certain text piece by piece."""

    def __init__(self, model: Model, request: Request):
        self.model, self.request = model, request
        self.certain = request.decoding.decoder.writer.commits_only
        self.sent = ""

    def see(self, frame: Frame) -> str:
        """What became certain with this frame."""
        return self._next(self.text(frame.canvas.tokens.tolist())) if self.certain else ""

    def end(self, text: str) -> str:
        """The rest of the final text."""
        return self._next(text)

    def _next(self, text: str) -> str:
        if not text.startswith(self.sent):
            return ""
        piece, self.sent = text[len(self.sent) :], text
        return piece

    def text(self, rows: list[list[int]]) -> str:
        request, at, text = self.request, 0, ""
        parts: tuple[str | int, ...] = (*request.prompt.parts, request.decoding.length)
        if request.suffix:
            parts = request.prompt.parts[:-1]
        if not request.template:
            parts, at = (request.decoding.length,), len(request.prompt.ids)
        shared = self._shared(rows)
        for number, part in enumerate(parts):
            if isinstance(part, str):
                text, at = text + part, at + len(self.model.text.encode(part))
                continue
            words, whole = self._gap(shared, at, part)
            last = number == len(parts) - 1
            text, at = text + (self._stopped(words, whole) if last else words), at + part
            if not whole:
                break
        return text[len(request.given) :]

    def _shared(self, rows: list[list[int]]) -> list[int]:
        """The ids that all rows begin with, before any mask."""
        first, mask = rows[0], self.model.denoiser.mask_id
        size = next((i for i, ids in enumerate(zip(*rows, strict=True)) if len({*ids}) > 1 or mask in ids), len(first))
        return first[:size]

    def _gap(self, shared: Sequence[int], at: int, size: int) -> tuple[str, bool]:
        """The text of a gap so far, and whether it is complete."""
        ids = list(shared[at : at + size])
        end = next((i for i, token in enumerate(ids) if token in self.model.eos), None)
        whole = end is not None or len(ids) == size
        text = self.model.text.decode(ids[:end])
        return (text, True) if whole else (text.rstrip(HALF), False)

    def _stopped(self, text: str, whole: bool) -> str:
        """Cut before a stop string, and before the beginning of one where more text may follow."""
        stops = self.request.decoding.stop
        text = text[: min((place for stop in stops if (place := text.find(stop)) >= 0), default=len(text))]
        if whole or not stops:
            return text
        longest = max(map(len, stops)) - 1
        ends = (size for size in range(min(longest, len(text)), 0, -1))
        held = next((size for size in ends if any(stop.startswith(text[-size:]) for stop in stops)), 0)
        return text[: len(text) - held]


class Observer:
    def __init__(self, generation: Generation, request: Request):
        self.generation, self.request = generation, request
        self.committed = Committed(generation.model, request)
        self.recorder: Recorder | None = None
        self._words: set[int] = set()  # tokens whose texts the reader knows

    def begin(self) -> Update | None:
        """The header of the trace, where one is shown."""
        if self.request.show != "trace":
            return None
        self.recorder = Recorder(self.generation.canvas([self.request.prompt]))
        return Update(0, line=self.generation.trace_header(self.request.prompt) | {"words": self._new_words()})

    def see(self, frame: Frame) -> Update | None:
        show = self.request.show
        if show is None:
            return None
        text = self.committed.see(frame)
        if show == "drafts":
            return Update(frame.step, text, draft=self._draft(frame))
        if self.recorder is not None:
            self.recorder.see(frame, 0, 0)
            return Update(frame.step, text, line=self.recorder.steps[-1] | {"words": self._new_words()})
        return Update(frame.step, text) if text else None

    def end(self, decoded: Decoded, step: int) -> Update:
        answer = self._answer(decoded)
        draft = answer.text if self.request.show == "drafts" else None
        return Update(step, self.committed.end(answer.text), draft=draft, answer=answer)

    def _draft(self, frame: Frame) -> str:
        leader = int(frame.score.argmax())
        ids = frame.canvas.tokens[leader].tolist()
        return self.request.cut(self.generation.partial(self.request.prompt, ids))

    def _new_words(self) -> dict[str, str]:
        assert self.recorder is not None
        new = sorted(self.recorder.words - self._words)
        self._words.update(new)
        return {str(token): self.generation.model.text.decode([token]) for token in new}

    def _answer(self, decoded: Decoded) -> Completed:
        model, request = self.generation.model, self.request
        output, canvas = self.generation.output(request.prompt, decoded), decoded.canvas
        row, pad = output.hypotheses[output.chosen], int(canvas.pad[output.chosen])
        prompt_tokens = sum(token != model.denoiser.mask_id for token in request.prompt.ids)
        text = request.cut(output.text)
        logp = canvas.logp[output.chosen, pad:].tolist()
        if request.template:
            slots = [place for place, order in enumerate(canvas.order[output.chosen, pad:].tolist()) if order]
            ids = tuple(row.ids[place] for place in slots)
            return Completed(output, text, "stop", prompt_tokens, ids, tuple(logp[place] for place in slots))
        first = len(request.prompt.ids)
        ids, finish = self._until_end(row.ids[first:], text)
        return Completed(output, text, finish, prompt_tokens, ids, tuple(logp[first : first + len(ids)]))

    def _until_end(self, ids: Sequence[int], text: str) -> tuple[tuple[int, ...], Finish]:
        """The ids of the text, and whether an end token or a stop string ended it."""
        model = self.generation.model
        end = next((i for i, token in enumerate(ids) if token in model.eos), None)
        whole = tuple(ids[:end])
        size = len(whole)
        if cut := len(model.text.decode(whole)) > len(text):
            size = next(n for n in range(size + 1) if len(model.text.decode(whole[:n])) >= len(text))
        return whole[:size], "length" if end is None and not cut else "stop"
