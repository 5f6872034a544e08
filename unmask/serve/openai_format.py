"""Answers in the shapes of OpenAI's interface."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from unmask.models import Model
from unmask.serve.request import Completed
from unmask.version import __version__


def dumps(value: Any) -> str:
    """JSON in UTF-8; half of a surrogate pair is replaced."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True)
class Replies:
    """The replies to one request. `chat` tells the two interfaces apart."""

    name: str  # of the model, as it is served
    model: Model
    chat: bool
    logprobs: bool
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, answers: Sequence[Completed]) -> dict[str, Any]:
        kind = "chat.completion" if self.chat else "text_completion"
        choices = [self._choice(index, answer) for index, answer in enumerate(answers)]
        return {**self._head(kind), "choices": choices, "usage": usage(answers)}

    def opening(self, index: int) -> dict[str, Any]:
        return self._chunk(self._delta(index, "", role=True))

    def piece(self, index: int, text: str) -> dict[str, Any]:
        return self._chunk(self._delta(index, text))

    def draft(self, index: int, step: int, text: str) -> dict[str, Any]:
        kind = "chat.completion.draft" if self.chat else "text_completion.draft"
        return self._chunk({**self._delta(index, None), "step": step, "draft": text}, kind)

    def closing(self, index: int, answer: Completed) -> dict[str, Any]:
        more = {"finish_reason": answer.finish, "logprobs": self._logprobs(answer)}
        return self._chunk({**self._delta(index, None), **more})

    def last(self, answers: Sequence[Completed]) -> dict[str, Any]:
        """What was used, where it was asked for."""
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return {**self._head(kind), "choices": [], "usage": usage(answers)}

    def _head(self, kind: str) -> dict[str, Any]:
        prefix = "chatcmpl" if self.chat else "cmpl"
        return {
            "id": f"{prefix}-{self.id}",
            "object": kind,
            "created": self.created,
            "model": self.name,
            "system_fingerprint": f"unmask-{__version__}",
        }

    def _chunk(self, choice: dict[str, Any], kind: str | None = None) -> dict[str, Any]:
        kind = kind or ("chat.completion.chunk" if self.chat else "text_completion")
        return {**self._head(kind), "choices": [choice]}

    def _delta(self, index: int, text: str | None, role: bool = False) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": index, "finish_reason": None, "logprobs": None}
        if not self.chat:
            return choice | {"text": text or ""}
        delta = {"role": "assistant"} if role else {}
        return choice | {"delta": delta | ({} if text is None else {"content": text})}

    def _choice(self, index: int, answer: Completed) -> dict[str, Any]:
        choice = {"index": index, "finish_reason": answer.finish, "logprobs": self._logprobs(answer)}
        if not self.chat:
            return choice | {"text": answer.text}
        return choice | {"message": {"role": "assistant", "content": answer.text, "refusal": None}}

    def _logprobs(self, answer: Completed) -> dict[str, Any] | None:
        """log p of each token when it was written."""
        if not self.logprobs:
            return None
        tokens = [self.model.text.decode([token]) for token in answer.ids]
        if self.chat:
            entries = [
                {"token": token, "logprob": logp, "bytes": list(token.encode("utf-8", "replace")), "top_logprobs": []}
                for token, logp in zip(tokens, answer.logp, strict=True)
            ]
            return {"content": entries, "refusal": None}
        ends = [len(self.model.text.decode(answer.ids[:size])) for size in range(len(tokens))]
        return {"tokens": tokens, "token_logprobs": list(answer.logp), "top_logprobs": None, "text_offset": ends}


def usage(answers: Sequence[Completed]) -> dict[str, int]:
    """Tokens as OpenAI counts them; rows and positions as `Output.cost` does."""
    prompt, completion = answers[0].prompt_tokens, sum(len(answer.ids) for answer in answers)
    costs = [answer.output.cost for answer in answers]
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "forward_passes": sum(cost.forward_passes for cost in costs),
        "computed": sum(cost.computed for cost in costs),
        "positions": sum(cost.positions for cost in costs),
    }
