"""What a server accepts, as one value. A request, what is told about it while it is decoded, and its answer: plain values that travel between processes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from unmask.core import reseed
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.runs.generation import Output
from unmask.runs.settings import Decoding
from unmask.runs.text import EncodedPrompt, OnePrompt, read_prompt


# The comments beside the fields are also the help of the command line's options.
@dataclass(frozen=True)
class RequestLimits:
    """What an engine accepts, and how much it does at the same time."""

    waiting: int = 256  # requests that may wait; others are refused with 429
    running: int = 64  # requests that are decoded at the same time
    batch_rows: int = 64  # rows per forward
    max_length: int = 1024  # masks that a request may ask for
    max_forward_passes: int = 65536  # rows of the network that a request may cost
    max_choices: int = 16  # answers per request
    max_seconds: float = 600.0  # seconds that a request may take, waiting included
    max_body: int = 4_000_000  # bytes of a request

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if not 0 <= value < math.inf or (value == 0 and limit.name != "waiting"):
                raise UnmaskError(f"{limit.name}={value} does not work: choose more than 0")


Finish = Literal["stop", "length"]
Show = Literal["text", "drafts", "trace"]  # what updates carry beside committed text


@dataclass(frozen=True)
class Grammar:
    """What an answer's text must match: a JSON schema or a regular expression."""

    kind: Literal["json", "regex"]
    text: str


@dataclass(frozen=True)
class Request:
    prompt: EncodedPrompt  # with its template, if it has one
    decoding: Decoding
    given: str = ""  # with a template: the text before it, which is not part of the answer
    suffix: str = ""  # the end of the template, if that is not part of the answer either
    template: bool = False
    grammar: Grammar | None = None
    show: Show | None = None  # None: only the answer is wanted
    client: str = ""  # requests of different clients take turns

    def sample(self, number: int) -> Request:
        """The request for the n-th independent answer."""
        decoding = replace(self.decoding, seed=reseed(self.decoding.seed, number))
        return replace(self, decoding=decoding)

    @property
    def rows(self) -> int:
        """Rows that it may cost."""
        masks = self.masks
        return self.decoding.decoder.resolved(masks).max_forward_passes(masks)

    def cut(self, text: str) -> str:
        """The answer inside a whole text."""
        return text[len(self.given) :].removesuffix(self.suffix)

    @property
    def masks(self) -> int:
        return sum(part for part in self.prompt.parts if isinstance(part, int)) + self.decoding.length


@dataclass(frozen=True)
class Completed:
    output: Output
    text: str
    finish: Finish
    prompt_tokens: int
    ids: tuple[int, ...]  # of the text
    logp: tuple[float, ...]  # of each of them, when it was written


@dataclass(frozen=True)
class Update:
    """What a step of a request brought."""

    step: int
    text: str = ""  # newly committed: certain to be part of the answer, and following what was committed before
    draft: str | None = None  # the leading row's text, with a sign for each mask
    line: dict[str, Any] | None = field(default=None, repr=False)  # of the trace
    answer: Completed | None = None  # with the last update


def read_request(
    model: Model,
    prompt: OnePrompt,
    decoding: Mapping[str, Any],
    limits: RequestLimits,
    vocab: int | None = None,
    *,
    template: str | None = None,
    **more: Any,
) -> Request:
    """What can be refused is refused here, before the request waits. `vocab` is how many ids the model knows."""
    default = 0 if template is not None else model.default_length
    length = default if decoding.get("length") is None else decoding["length"]
    chosen = Decoding.from_dict({**decoding, "length": length})
    if chosen.length > limits.max_length:
        raise UnmaskError(f"length={chosen.length} is above this server's limit: choose at most {limits.max_length}")
    if isinstance(prompt, list) and vocab is not None:
        _check_ids(prompt, vocab)
    request = Request(read_prompt(model, prompt, chosen.length), chosen, **more)
    if template is not None:
        if not isinstance(prompt, str) and isinstance(prompt[0], int):
            raise UnmaskError("a template follows text or chat messages, not token ids")
        request = _with_template(model, request, template)
    _check(model, request, limits)
    return request


def _with_template(model: Model, request: Request, template: str) -> Request:
    if request.decoding.early_end:
        raise UnmaskError("early_end does not work with a template: choose one of them")
    if request.decoding.stop and not request.decoding.length:
        raise UnmaskError("stop ends the text after a template, and there is none: leave it out, or give a length")
    given = request.prompt.text
    prompt = read_prompt(model, given + template, request.decoding.length, infill=True)
    return replace(request, prompt=prompt, given=given, template=True)


def _check(model: Model, request: Request, limits: RequestLimits) -> None:
    mask, gaps = model.denoiser.mask_id, sum(part for part in request.prompt.parts if isinstance(part, int))
    if request.prompt.ids.count(mask) > gaps:
        raise UnmaskError(f"the prompt holds the mask token (id {mask}): give a template to have gaps filled")
    if not request.prompt.ids:
        raise UnmaskError("the prompt is empty: give at least one token")
    if request.masks < 1:
        raise UnmaskError(f"length={request.decoding.length} leaves nothing to write: give at least 1")
    if request.masks > limits.max_length:
        raise UnmaskError(f"{request.masks} masks are above this server's limit: choose at most {limits.max_length}")
    if request.rows > limits.max_forward_passes:
        raise UnmaskError(
            f"this decoder asks for up to {request.rows} rows, above this server's limit of {limits.max_forward_passes}: "
            "shorten the answer or search less"
        )


def _check_ids(prompt: list[Any], vocab: int) -> None:
    """An id that does not exist would end a GPU's process, and everything in it."""
    for token in prompt:
        if isinstance(token, int) and not 0 <= token < vocab:
            raise UnmaskError(f"there is no token {token}: the model knows 0 to {vocab - 1}")
