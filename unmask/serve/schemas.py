"""What clients send and receive: OpenAI's fields, and those of this package beside them. No field is ignored."""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from sse_starlette import EventSourceResponse

from unmask.core import Decoder, decoder
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.runs.files import strict_json
from unmask.runs.settings import DecodingOptions, with_temperature
from unmask.serve.engine import Updates
from unmask.serve.limits import RefusedError
from unmask.serve.request import NEUTRAL, Completed, Grammar, check_neutral
from unmask.version import __version__

PING = 15  # seconds after which an idle stream sends a ping
STUCK = 60.0  # seconds after which a client that reads nothing from its stream is disconnected
log = logging.getLogger("unmask.serve")

Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Count = Annotated[int, Field(ge=1, lt=2**31)]


class Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class StreamOptions(Schema):
    include_usage: bool = False
    include_obfuscation: Literal[False] = False


class TextPart(Schema):
    type: Literal["text"]
    text: str


class Message(Schema):
    role: Literal["system", "user", "assistant"]
    content: str | list[TextPart]

    def plain(self) -> dict[str, str]:
        content = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        return {"role": self.role, "content": content}


class JsonSchema(Schema):
    name: str | None = None
    description: str | None = None
    strict: bool | None = None
    json_schema: dict[str, Any] = Field(alias="schema")


class ResponseFormat(Schema):
    type: Literal["text", "json_object", "json_schema", "regex"]
    json_schema: JsonSchema | None = None
    pattern: str | None = None  # of type `regex`

    def grammar(self) -> Grammar | None:
        if self.type == "text":
            return None
        if self.type == "json_object":
            return Grammar("json", '{"type": "object"}')
        if self.type == "json_schema":
            if self.json_schema is None:
                raise UnmaskError("response_format of type 'json_schema' needs json_schema")
            return Grammar("json", json.dumps(self.json_schema.json_schema))
        if self.pattern is None:
            raise UnmaskError("response_format of type 'regex' needs pattern")
        return Grammar("regex", self.pattern)


class Settings(Schema):
    """Fields that every request may have. Those named as in `unmask.Decoding` are options of decoding."""

    @model_validator(mode="before")
    @classmethod
    def _check_unicode(cls, values: Any) -> Any:
        """Refuse half of a surrogate pair, which JSON can hold but text cannot."""
        if isinstance(values, bytes):
            raise ValueError("send it with the header Content-Type: application/json")
        try:
            json.dumps(values, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("a text holds half of a surrogate pair, which is not Unicode") from None
        return values

    model: str
    seed: Seed | None = None
    temperature: float | None = Field(None, ge=0, le=100)
    stop: str | list[str] | None = None
    user: str | None = Field(None, max_length=256)
    decoder: str | None = Field(None, max_length=1000)
    guidance: float | None = None
    suppress: bool | None = None
    early_end: bool | None = None
    cache: str | None = Field(None, max_length=100)
    template: str | None = None  # the answer with gaps, each written <mask:n>
    timeout: float | None = Field(None, gt=0)  # seconds

    def decoding(self, default: str | Decoder) -> dict[str, Any]:
        """Return the options of decoding that were given; `default` is the decoder of the server."""
        chosen = decoder.make(default if self.decoder is None else self.decoder)
        if self.temperature is not None:
            chosen = with_temperature(chosen, self.temperature)
        names = DecodingOptions.__annotations__.keys() & (type(self).model_fields.keys() | {"length"})
        return {name: getattr(self, name) for name in names} | {"decoder": chosen}


class Completion(Settings):
    max_tokens: Count | None = None
    n: Count = 1
    stream: bool = False
    stream_options: StreamOptions | None = None
    stream_mode: Literal["committed", "denoise"] = "committed"
    response_format: ResponseFormat | None = None

    @model_validator(mode="before")
    @classmethod
    def _drop_neutral(cls, values: Any) -> Any:
        """Drop unsupported settings whose values change nothing, and refuse others."""
        if not isinstance(values, dict):
            return values
        unsupported = NEUTRAL.keys() - cls.model_fields.keys()
        for name in unsupported & values.keys():
            check_neutral(name, values[name])
        return {name: value for name, value in values.items() if name not in unsupported}

    @property
    def length_name(self) -> str:
        return "max_tokens"

    @property
    def length(self) -> int | None:
        return getattr(self, self.length_name)

    @property
    def wants_logprobs(self) -> bool:
        """Return whether `logprobs` was given: true in a chat, 0 in a text completion."""
        given = getattr(self, "logprobs", None)
        return given is not None and given is not False

    def check(self) -> None:
        """Refuse settings that would have to be ignored."""
        if self.stream_options is not None and not self.stream:
            raise UnmaskError("stream_options is for streams: set stream=true or leave it out")
        if self.stream_mode != "committed" and not self.stream:
            raise UnmaskError(f"stream_mode={self.stream_mode!r} is for streams: set stream=true or leave it out")


class TextCompletion(Completion):
    prompt: str | list[int] | list[str]
    suffix: str | None = None
    logprobs: int | None = None

    def one_prompt(self) -> str | list[int]:
        if isinstance(self.prompt, str):
            return self.prompt
        texts = [part for part in self.prompt if isinstance(part, str)]
        if len(texts) > 1:
            raise UnmaskError(f"a request has one prompt, got {len(texts)}: send one request for each")
        return texts[0] if texts else [part for part in self.prompt if isinstance(part, int)]

    def check(self) -> None:
        super().check()
        if self.logprobs:
            raise UnmaskError(
                f"logprobs must be 0, got {self.logprobs}: 0 returns log p of each token when it was written; "
                "alternatives are not kept"
            )


class ChatCompletion(Completion):
    messages: list[Message] = Field(min_length=1)
    max_completion_tokens: Count | None = None
    logprobs: bool | None = None

    @property
    def length_name(self) -> str:
        return "max_tokens" if self.max_completion_tokens is None else "max_completion_tokens"

    def check(self) -> None:
        super().check()
        if self.max_tokens is not None and self.max_completion_tokens not in (None, self.max_tokens):
            raise UnmaskError("max_tokens and max_completion_tokens differ: give one of them")


class Decode(Settings):
    """`/api/decode`: one prompt or one chat, decoded with a trace."""

    prompt: str | None = None
    messages: list[Message] | None = Field(None, min_length=1)
    length: Count | None = None

    def one_prompt(self) -> str | list[dict[str, str]]:
        if self.prompt is not None and self.messages is None:
            return self.prompt
        if self.messages is not None and self.prompt is None:
            return [message.plain() for message in self.messages]
        raise UnmaskError("give either prompt or messages")


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


def event_stream(
    events: AsyncIterator[tuple[str | None, Any]], updates: Updates, error_name: str | None = None
) -> EventSourceResponse:
    """Respond with server-sent events, given their names and data; an error is the last of them.

    A client that disconnects cancels its requests, even before the first event.
    """

    async def encoded() -> AsyncIterator[dict[str, str | None]]:
        try:
            async for name, data in events:
                yield {"event": name, "data": data if isinstance(data, str) else strict_json(data)}
        except Exception as error:
            yield {"event": error_name, "data": strict_json(status_and_body(error)[1])}
        finally:
            updates.cancel()

    async def cancel(message: object) -> None:
        updates.cancel()

    return EventSourceResponse(
        encoded(),
        ping=PING,
        sep="\n",
        send_timeout=STUCK,
        headers={"cache-control": "no-store"},
        client_close_handler_callable=cancel,
    )


async def chunk_events(replies: Replies, updates: Updates, with_usage: bool) -> AsyncIterator[tuple[str | None, Any]]:
    """Yield the answers to a request in chunks, and at the end what they used if that was asked for."""
    answers: dict[int, Completed] = {}
    for index in range(updates.count) if replies.chat else ():
        yield None, replies.chunk(index, {"role": "assistant", "content": ""})
    async for update in updates:
        index = update.number
        if update.draft is not None:
            draft = replies.chunk(index, {}, step=update.step, draft=update.draft)
            yield "draft", draft | {"object": f"{replies.kind}.draft"}
        if update.text:
            yield None, replies.chunk(index, {"content": update.text})
        if update.answer is not None:
            answers[index] = update.answer
            yield None, replies.last_chunk(index, update.answer)
    if with_usage:
        total = usage([answers[index] for index in sorted(answers)])
        yield None, replies.chunk(0, {}) | {"choices": [], "usage": total}
    yield None, "[DONE]"


async def trace_events(updates: Updates) -> AsyncIterator[tuple[str | None, Any]]:
    """Yield the lines of a trace file as events: header, step …, end."""
    async for update in updates:
        if update.line is not None:
            yield "step" if update.step else "header", update.line
        if (answer := update.answer) is not None:
            output = answer.output
            texts = [hypothesis.text for hypothesis in output.hypotheses]
            end = {"chosen": output.chosen, "text": answer.text, "texts": texts, "cost": vars(output.cost)}
            yield "end", {"end": end}
