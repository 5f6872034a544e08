"""What a request's reader is told: an update per frame, and the answer at the end."""

from __future__ import annotations

from collections.abc import Sequence

from unmask.core import Decoded, Frame
from unmask.runs.generation import Generation
from unmask.runs.trace import Recorder
from unmask.serve.committed import Committed
from unmask.serve.request import Completed, Finish, Request, Update


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
        row, pad = output.rows[output.chosen], int(canvas.pad[output.chosen])
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
