"""Answers, streams and errors in the format of OpenAI's interface."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sse_starlette import EventSourceResponse

from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.runs.files import strict_json
from unmask.serve.engine import Updates
from unmask.serve.request import Completed, RefusedError, Update
from unmask.version import __version__

PING = 15  # seconds after which an idle stream sends a ping
STUCK = 60.0  # seconds after which a client that reads nothing from its stream is disconnected
log = logging.getLogger("unmask.serve")


def error_body(message: str, kind: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def status_and_body(error: Exception) -> tuple[int, dict[str, Any]]:
    """Return the HTTP status and body for an error. One that the client did not cause is written to the log only."""
    if isinstance(error, RefusedError):
        return error.status, error_body(str(error), error.kind, error.code, error.param)
    if isinstance(error, UnmaskError):
        return 400, error_body(str(error), "invalid_request_error")
    log.error("a request failed", exc_info=error)
    return 500, error_body("the server failed to answer: see its log", "server_error", "internal_error")


@dataclass(frozen=True)
class Replies:
    """The replies to one request, for chat or for text completion."""

    name: str  # of the model, as it is served
    model: Model
    chat: bool
    logprobs: bool
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def kind(self) -> str:
        return "chat.completion" if self.chat else "text_completion"

    def whole(self, answers: Sequence[Completed]) -> dict[str, Any]:
        choices = [self._choice(index, answer) for index, answer in enumerate(answers)]
        return {**self._head(self.kind), "choices": choices, "usage": usage(answers)}

    def chunk(self, index: int, delta: Mapping[str, str], **more: Any) -> dict[str, Any]:
        """Return a chunk of a stream that adds `delta` to the answer with this index."""
        content = {"delta": delta} if self.chat else {"text": delta.get("content", "")}
        choice = {"index": index, "finish_reason": None, "logprobs": None, **content, **more}
        return {**self._head("chat.completion.chunk" if self.chat else "text_completion"), "choices": [choice]}

    def last_chunk(self, index: int, answer: Completed) -> dict[str, Any]:
        return self.chunk(index, {}, finish_reason=answer.finish, logprobs=self._logprobs(answer))

    def _head(self, kind: str) -> dict[str, Any]:
        prefix = "chatcmpl" if self.chat else "cmpl"
        return {
            "id": f"{prefix}-{self.id}",
            "object": kind,
            "created": self.created,
            "model": self.name,
            "system_fingerprint": f"unmask-{__version__}",
        }

    def _choice(self, index: int, answer: Completed) -> dict[str, Any]:
        choice = {"index": index, "finish_reason": answer.finish, "logprobs": self._logprobs(answer)}
        if not self.chat:
            return choice | {"text": answer.text}
        return choice | {"message": {"role": "assistant", "content": answer.text, "refusal": None}}

    def _logprobs(self, answer: Completed) -> dict[str, Any] | None:
        """Return log p of each token when it was written, if it was asked for."""
        if not self.logprobs:
            return None
        tokens = [self.model.text.decode([token]) for token in answer.ids]
        if self.chat:
            entries = [
                {"token": token, "logprob": logp, "bytes": list(token.encode("utf-8", "replace")), "top_logprobs": []}
                for token, logp in zip(tokens, answer.logp, strict=True)
            ]
            return {"content": entries, "refusal": None}
        starts = [len(self.model.text.decode(answer.ids[:size])) for size in range(len(tokens))]
        return {"tokens": tokens, "token_logprobs": list(answer.logp), "top_logprobs": None, "text_offset": starts}


def usage(answers: Sequence[Completed]) -> dict[str, int]:
    """Return tokens as OpenAI counts them, and forward passes and positions as `Output.cost` does."""
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


def event_stream(events: AsyncIterator[dict[str, str]], every: Sequence[Updates]) -> EventSourceResponse:
    """Respond with server-sent events. A client that disconnects cancels its requests, even before the first event."""

    async def cancel(message: object) -> None:
        for updates in every:
            updates.cancel()

    return EventSourceResponse(
        events,
        ping=PING,
        sep="\n",
        send_timeout=STUCK,
        headers={"cache-control": "no-store"},
        client_close_handler_callable=cancel,
    )


async def chunk_events(replies: Replies, every: Sequence[Updates], with_usage: bool) -> AsyncIterator[dict[str, str]]:
    """Yield the answers to a request in chunks, and at the end what they used if that was asked for."""
    answers: dict[int, Completed] = {}
    try:
        for index in range(len(every)) if replies.chat else ():
            yield {"data": strict_json(replies.chunk(index, {"role": "assistant", "content": ""}))}
        async for index, update in merge_updates(every):
            if update.draft is not None:
                draft = replies.chunk(index, {}, step=update.step, draft=update.draft)
                yield {"event": "draft", "data": strict_json(draft | {"object": f"{replies.kind}.draft"})}
            if update.text:
                yield {"data": strict_json(replies.chunk(index, {"content": update.text}))}
            if update.answer is not None:
                answers[index] = update.answer
                yield {"data": strict_json(replies.last_chunk(index, update.answer))}
        if with_usage:
            total = usage([answers[index] for index in sorted(answers)])
            yield {"data": strict_json(replies.chunk(0, {}) | {"choices": [], "usage": total})}
        yield {"data": "[DONE]"}
    except Exception as error:
        yield {"data": strict_json(status_and_body(error)[1])}
    finally:
        for updates in every:
            updates.cancel()


async def trace_events(updates: Updates) -> AsyncIterator[dict[str, str]]:
    """Yield the lines of a trace file as events: header, step …, end."""
    try:
        async for update in updates:
            if update.line is not None:
                yield {"event": "step" if update.step else "header", "data": strict_json(update.line)}
            if (answer := update.answer) is not None:
                output = answer.output
                texts = [hypothesis.text for hypothesis in output.hypotheses]
                end = {"chosen": output.chosen, "text": answer.text, "texts": texts, "cost": vars(output.cost)}
                yield {"event": "end", "data": strict_json({"end": end})}
    except Exception as error:
        yield {"event": "error", "data": strict_json(status_and_body(error)[1])}
    finally:
        updates.cancel()


async def merge_updates(every: Sequence[Updates]) -> AsyncIterator[tuple[int, Update]]:
    """Yield the updates of several requests as they come, each with the index of its request."""
    events: asyncio.Queue[tuple[int, Update | Exception | None]] = asyncio.Queue()

    async def follow(index: int, updates: Updates) -> None:
        try:
            async for update in updates:
                events.put_nowait((index, update))
            events.put_nowait((index, None))
        except Exception as error:
            events.put_nowait((index, error))

    tasks = [asyncio.ensure_future(follow(index, updates)) for index, updates in enumerate(every)]
    try:
        open_streams = len(tasks)
        while open_streams:
            index, event = await events.get()
            if isinstance(event, Exception):
                raise event
            if event is None:
                open_streams -= 1
            else:
                yield index, event
    finally:
        for task in tasks:
            task.cancel()
