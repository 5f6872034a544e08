"""The bodies of HTTP requests: OpenAI's fields, and those of this package beside them. Nothing is ignored."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from unmask.core import Decoder, decoder
from unmask.errors import UnmaskError
from unmask.runs.settings import with_temperature
from unmask.serve.errors import BadBodyError
from unmask.serve.request import Grammar

# Settings of OpenAI's interface that decoders here do not have, with the values that mean nothing.
INSTEAD = {"top_p": "it is a setting of the decoder `dream`, such as dream(top-p=0.9); leave it out"}
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "top_p": (1,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "best_of": (1,),
    "echo": (False,),
    "top_logprobs": (0,),
    "tools": ([],),
    "functions": ([],),
    "tool_choice": ("none",),
    "parallel_tool_calls": (False, True),
    "modalities": (["text"],),
    "store": (False,),
    "service_tier": ("auto", "default"),
    "metadata": ({},),
}
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Count = Annotated[int, Field(ge=1, lt=2**31)]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class StreamOptions(Body):
    include_usage: bool = False
    include_obfuscation: Literal[False] = False


class TextPart(Body):
    type: Literal["text"]
    text: str


class Message(Body):
    role: Literal["system", "user", "assistant"]
    content: str | list[TextPart]

    def plain(self) -> dict[str, str]:
        content = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        return {"role": self.role, "content": content}


class JsonSchema(Body):
    name: str | None = None
    description: str | None = None
    strict: bool | None = None
    json_schema: dict[str, Any] = Field(alias="schema")


class ResponseFormat(Body):
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


class Settings(Body):
    """Fields that every request may have."""

    @model_validator(mode="before")
    @classmethod
    def _unicode(cls, values: Any) -> Any:
        """JSON can name half of a surrogate pair, which no text has."""
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

    def decoding(self, default: str | Decoder, length: int | None) -> dict[str, Any]:
        """The fields of `unmask.Decoding` that were given."""
        chosen = decoder.make(self.decoder if self.decoder is not None else default)
        if self.temperature is not None:
            chosen = with_temperature(chosen, self.temperature)
        names = ("seed", "guidance", "suppress", "early_end", "cache", "stop")
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        return {**given, "decoder": chosen, **({} if length is None else {"length": length})}


class Completion(Settings):
    max_tokens: Count | None = None
    n: Count = 1
    stream: bool = False
    stream_options: StreamOptions | None = None
    stream_mode: Literal["committed", "denoise"] = "committed"
    response_format: ResponseFormat | None = None
    top_p: Any = None
    frequency_penalty: Any = None
    presence_penalty: Any = None
    logit_bias: Any = None
    store: Any = None
    service_tier: Any = None
    metadata: Any = None

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
        """Refuses settings that would have to be ignored."""
        for name, values in NEUTRAL.items():
            value = getattr(self, name, None)
            if value is not None and not any(value == same and _is_bool(value) == _is_bool(same) for same in values):
                instead = INSTEAD.get(name, "decoders here have no such setting; leave it out")
                raise BadBodyError(f"{name}={value!r} cannot be honoured: {instead}", name)
        if self.stream_options is not None and not self.stream:
            raise UnmaskError("stream_options is for streams: set stream=true or leave it out")
        if self.stream_mode != "committed" and not self.stream:
            raise UnmaskError(f"stream_mode={self.stream_mode!r} is for streams: set stream=true or leave it out")


class TextCompletion(Completion):
    prompt: str | list[int] | list[str]
    suffix: str | None = None
    logprobs: int | None = None
    best_of: Any = None
    echo: Any = None

    @property
    def wants_logprobs(self) -> bool:
        return self.logprobs is not None

    def one_prompt(self) -> str | list[int]:
        if isinstance(self.prompt, list) and self.prompt and isinstance(self.prompt[0], str):
            if len(self.prompt) > 1:
                raise UnmaskError(f"a request has one prompt, not {len(self.prompt)}: send one request for each")
            return self.prompt[0]
        return self.prompt  # type: ignore[return-value]

    def check(self) -> None:
        super().check()
        if self.logprobs:
            raise UnmaskError(
                f"logprobs={self.logprobs} cannot be honoured: alternatives are not kept; logprobs=0 gives log p of "
                "each token when it was written"
            )


class ChatCompletion(Completion):
    messages: list[Message] = Field(min_length=1)
    max_completion_tokens: Count | None = None
    logprobs: bool | None = None
    top_logprobs: Any = None
    tools: Any = None
    functions: Any = None
    tool_choice: Any = None
    parallel_tool_calls: Any = None
    modalities: Any = None

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
    """`/api/decode`: one prompt or one chat, decoded in full view."""

    prompt: str | None = None
    messages: list[Message] | None = Field(None, min_length=1)
    length: Count | None = None

    def one_prompt(self) -> str | list[dict[str, str]]:
        if (self.prompt is None) == (self.messages is None):
            raise UnmaskError("give either prompt or messages")
        return self.prompt if self.messages is None else [message.plain() for message in self.messages]  # type: ignore[return-value]


def _is_bool(value: Any) -> bool:
    """True equals 1, and does not mean it."""
    return isinstance(value, bool)
