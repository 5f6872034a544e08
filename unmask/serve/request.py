"""A request, its updates and its answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from unmask.core import reseed
from unmask.core.decoder import resolve
from unmask.errors import UnmaskError, check_known
from unmask.models import Model
from unmask.runs.generation import Generation, Output
from unmask.runs.settings import Decoding, DecodingOptions, check_cost
from unmask.runs.text import EncodedPrompt, Finish, OnePrompt, read_prompt
from unmask.serve.limits import RefusedError, RequestLimits

# Settings of other interfaces that decoders here do not have, with the values that change nothing.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "top_p": (1,),
    "top_k": (0,),
    "num_beams": (1,),
    "num_return_sequences": (1,),
    "num_choices": (1,),
    "best_of": (1,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "echo": (False,),
    "tools": ([],),
    "functions": ([],),
    "tool_choice": ("none",),
    "parallel_tool_calls": (False, True),
    "modalities": (["text"],),
    "store": (False,),
    "service_tier": ("auto", "default"),
    "metadata": ({},),
}


def check_neutral(name: str, value: Any) -> None:
    """Refuse a setting that decoders here do not have, unless its value changes nothing."""
    same_kind = (each for each in NEUTRAL[name] if isinstance(each, bool) == isinstance(value, bool))  # True equals 1
    if value is not None and value not in same_kind:
        advice = "use the decoder `dream`, such as dream(top-p=0.9)" if name == "top_p" else "leave it out"
        raise RefusedError(f"{name}={value!r} is not supported: {advice}", param=name)


Show = Literal["text", "drafts", "trace"]  # what updates carry: stable text, and drafts or lines of a trace beside it


@dataclass(frozen=True)
class Grammar:
    """A JSON schema or a regular expression that the text of an answer must match."""

    kind: Literal["json", "regex"]
    text: str


class RequestOptions(DecodingOptions, total=False):
    """Everything that a request may say beside its prompt."""

    template: str | None  # the answer with gaps, each written <mask:n>
    suffix: str  # the end of the template that is not part of the answer
    grammar: Grammar | None
    show: Show | None
    client: str


@dataclass(frozen=True)
class Request:
    prompt: EncodedPrompt  # with its template, if it has one
    decoding: Decoding
    given: str = ""  # with a template: the text before it, which is not part of the answer
    suffix: str = ""  # the end of the template, if that is not part of the answer either
    infill: bool = False  # the prompt has gaps to be filled
    grammar: Grammar | None = None
    show: Show | None = None  # None: there is one update, with the answer
    client: str = ""  # requests of different clients take turns
    max_forward_passes: int = 0  # upper bound of its cost

    def sample(self, number: int) -> Request:
        """Return the request for the n-th independent answer."""
        return replace(self, decoding=replace(self.decoding, seed=reseed(self.decoding.seed, number)))

    @property
    def masks(self) -> int:
        return self.prompt.gaps + self.decoding.length

    def answer_in(self, text: str) -> str:
        """Return the answer without the given text around it."""
        return text[len(self.given) :].removesuffix(self.suffix)


@dataclass(frozen=True)
class Completed:
    """The answer to a request."""

    output: Output
    text: str
    finish: Finish
    prompt_tokens: int
    ids: tuple[int, ...]  # tokens of the text
    logp: tuple[float, ...]  # log p of each token when it was written


@dataclass(frozen=True)
class Update:
    """A change to the answer of a request, after a step of its decoder."""

    step: int
    text: str = ""  # stable text that follows what earlier updates carried
    draft: str | None = None  # the text of the best hypothesis, with a sign for each mask
    line: dict[str, Any] | None = field(default=None, repr=False)  # a line of the trace
    answer: Completed | None = None  # with the last update
    number: int = 0  # which of several answers to the request it belongs to


Event = Update | Exception


class PendingRequest:
    """A request inside an engine, from its arrival to its end.

    `post` is called with every update, the last of which has the answer, or with the exception that ended the request.
    """

    def __init__(self, request: Request, post: Callable[[Event], None]):
        self.request, self._post = request, post
        self.on_cancel: Callable[[], object] = lambda: None  # called once, by `cancel`
        self.arrived = time.monotonic()
        self.started: float | None = None  # when it left the queue
        self.streamed = False  # a part of its answer was posted, so it cannot be decoded again from the start
        self.isolated = False  # it gets a batch of its own, since a batch that it shared has failed
        self.retried = False  # it was decoded again after it did not fit the memory
        self.lost_workers = 0  # workers that died while they decoded it
        self.cancelled = False
        self.ended = False

    @property
    def active(self) -> bool:
        return not self.ended and not self.cancelled

    def post(self, event: Event) -> None:
        if not self.active:
            return
        if isinstance(event, Update):
            self.streamed |= bool(event.text or event.line or event.draft)
            self.ended = event.answer is not None
        else:
            self.ended = True
        self._post(event)

    def cancel(self) -> None:
        """Post nothing from now on; the scheduler frees its rows before the next forward pass."""
        if self.active:
            self.on_cancel()
        self.cancelled = True


def read_request(model: Model, prompt: OnePrompt, options: Mapping[str, Any], limits: RequestLimits) -> Request:
    """Make a request from `RequestOptions`. Whatever can be refused is refused here, before the request waits."""
    for name in options:
        check_known(RequestOptions.__annotations__, argument=name)
    own = {name: value for name, value in options.items() if value is not None}
    decoding = {name: own.pop(name) for name in DecodingOptions.__annotations__ if name in own}
    template = own.pop("template", None)
    length = model.default_length if template is None else 0
    chosen = Decoding.from_dict({"length": length, **decoding})
    _check_length(chosen.length, limits)
    if template is None:
        request = Request(Generation(model, chosen).read(prompt), chosen, **own)
    else:
        request = _with_template(model, prompt, chosen, template, own)
    _check_length(request.masks, limits)
    decoder = resolve(chosen.decoder, model.denoiser.block_size, request.masks)
    times = 2 if chosen.guidance > 0 else 1
    advice = f"this server allows {limits.max_forward_passes:,}: choose a shorter answer or less search"
    check_cost(decoder, request.masks, limits.max_forward_passes, times, advice=advice)
    return replace(request, max_forward_passes=times * decoder.max_forward_passes(request.masks))


def _with_template(
    model: Model, prompt: OnePrompt, decoding: Decoding, template: str, own: Mapping[str, Any]
) -> Request:
    if decoding.early_end:
        raise UnmaskError("early_end and a template cannot be combined: leave out one of them")
    if decoding.stop and not decoding.length:
        raise UnmaskError("stop ends the text after a template, and there is none: leave it out, or give a length")
    if not isinstance(prompt, str) and isinstance(prompt[0], int):
        raise UnmaskError("a template follows text or chat messages, not token ids")
    given = read_prompt(model, prompt, decoding.length).text
    filled = Generation(model, decoding, infill=True).read(given + template)
    if filled.ids.count(mask := model.denoiser.mask_id) > filled.gaps:
        raise UnmaskError(f"the prompt contains the mask token (id {mask}): write a gap as <mask:n>")
    return Request(filled, decoding, given=given, infill=True, **own)


def _check_length(length: int, limits: RequestLimits) -> None:
    if length > limits.max_length:
        raise UnmaskError(f"length must be at most {limits.max_length} on this server, got {length}")
