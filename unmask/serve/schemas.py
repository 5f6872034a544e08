"""The schemas of HTTP requests: OpenAI's fields, and those of this package beside them. No field is ignored."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from unmask.core import Decoder, decoder
from unmask.errors import UnmaskError
from unmask.runs.settings import DecodingOptions, with_temperature
from unmask.serve.request import NEUTRAL, Grammar, check_neutral

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
        return False

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

    @property
    def wants_logprobs(self) -> bool:
        return self.logprobs is not None

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

    @property
    def wants_logprobs(self) -> bool:
        return bool(self.logprobs)

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
