"""How prompts are decoded, as one value: the API, grids, jobs and records hold it whole."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from numbers import Integral
from typing import Any, TypedDict

from unmask.core import Adapter, Canvas, Decoder, Denoiser, block_size, decoder
from unmask.core.decoder import fit
from unmask.decoders import SINGLE_PATHS
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.models.cache import cached, make_cache, usual_cache
from unmask.models.early_end import EarlyEnd, after_stop
from unmask.models.guidance import Guided
from unmask.models.suppress import Suppressed

DECODER = "search"  # where none is named; docs/search.md says why


class DecodingOptions(TypedDict, total=False):
    """The fields of `Decoding` as keyword arguments."""

    decoder: str | Decoder
    length: int | None
    seed: int
    guidance: float
    suppress: bool
    early_end: bool
    cache: str | None
    stop: str | Sequence[str]


def usual_decoder() -> Decoder:
    return decoder.make(DECODER)


# The comments beside the fields are also the help of the command line's options.
@dataclass(frozen=True)
class Decoding:
    """How a prompt is decoded."""

    decoder: Decoder = field(default_factory=usual_decoder)  # a decoder and its settings, such as ots(beams=4)
    length: int = 0  # masks after the prompt
    seed: int = 0  # the same seed gives the same answer
    guidance: float = 0.0  # scale of classifier-free guidance; above 0 it doubles the rows
    suppress: bool = False  # never write end-of-text
    early_end: bool = False  # compute nothing after an answer's end-of-text; approximate (docs/caching.md)
    cache: str | None = None  # KV cache: none, exact, or approximate: prefix, dual, dual(refresh=4) (docs/caching.md)
    stop: tuple[str, ...] = ()  # cut the text before the first of these strings; a single path then computes no more

    def __post_init__(self) -> None:
        if not isinstance(self.decoder, Decoder):
            raise UnmaskError(_not_a_decoder(self.decoder))
        for name in ("length", "seed"):
            if isinstance(value := getattr(self, name), bool) or not isinstance(value, Integral):
                raise UnmaskError(f"{name}={value!r} does not work: give a whole number")
            object.__setattr__(self, name, int(value))  # numpy's are not JSON
        if (
            isinstance(self.guidance, bool)
            or not isinstance(self.guidance, int | float)
            or not 0 <= self.guidance < math.inf
        ):
            raise UnmaskError(f"guidance={self.guidance!r} does not work: choose 0 (none) or more")
        if self.suppress and self.early_end:
            raise UnmaskError("early_end waits for the end-of-text that suppress forbids: choose one of them")
        if not all(isinstance(text, str) and text for text in self.stop):
            raise UnmaskError("a stop string is empty or not text: give at least one character")
        if self.cache is not None:
            object.__setattr__(self, "cache", make_cache(self.cache))  # the same spelling in every record

    def denoiser(self, model: Model) -> Denoiser:
        """The model's denoiser, with its cache: what the meter counts."""
        return cached(model.denoiser, self.cache, model.name)

    def adapter(self, model: Model) -> Adapter:
        """Wraps the metered denoiser; guidance comes first, so that its rows are counted."""

        def adapt(denoiser: Denoiser, canvas: Canvas) -> Denoiser:
            if self.guidance > 0:
                denoiser = Guided(denoiser, canvas.real & ~canvas.masked, self.guidance)
            if self.suppress:
                denoiser = Suppressed(denoiser, model.eos)
            if self.early_end:
                denoiser = EarlyEnd(denoiser, model.eos)
            if self.ends_at_stop and model.eos:
                denoiser = EarlyEnd(denoiser, model.eos, after_stop(model, self.stop))
            return denoiser

        return adapt

    @property
    def ends_at_stop(self) -> bool:
        """Whether nothing is computed after a stop string: what follows on a single path changes no answer."""
        return bool(self.stop) and isinstance(self.decoder, SINGLE_PATHS)

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "decoder": spec(self.decoder), "stop": list(self.stop)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Decoding:
        """From `to_dict`, or from what a user wrote: a decoder's spec, one stop string or a list of them."""
        stop = values.get("stop", ())
        stop = () if stop is None else stop
        if not isinstance(stop, Iterable):
            raise UnmaskError(f"stop={stop!r} does not work: give a text or a list of them")
        parts = {"decoder": decoder.make(values.get("decoder", DECODER))}
        return cls(**{**values, **parts, "stop": (stop,) if isinstance(stop, str) else tuple(stop)})

    def record(self, masks: int, model: Model) -> dict[str, Any]:
        """Plain values, with every default written out for this model and number of masks."""
        chosen = fit(self.decoder, block_size(model.denoiser), masks).resolved(masks)
        return replace(self, decoder=chosen, cache=self.cache or usual_cache(model.denoiser)).to_dict()


def spec(value: Decoder) -> str:
    """The decoder's text form; the repr of one that is not registered."""
    try:
        return decoder.spec(value)
    except UnmaskError:
        return repr(value)


def decoder_with(setting: str) -> str | None:
    """A decoder that has this setting, a simple one first."""
    names = ("low-confidence", "order-token-search", *decoder)
    return next((name for name in names if setting in {each.name for each in fields(decoder.find(name))}), None)  # type: ignore[arg-type]


def heated(chosen: Decoder, temperature: float) -> Decoder:
    """The decoder at another temperature: its own, or that of what it wraps. Without one it takes likeliest tokens."""
    names = {field.name for field in fields(chosen)} if is_dataclass(chosen) else set()  # type: ignore[arg-type]
    if "temperature" in names:
        return replace(chosen, temperature=float(temperature))  # type: ignore[type-var]
    if "inner" in names:
        return replace(chosen, inner=heated(chosen.inner, temperature))  # type: ignore[type-var, attr-defined]
    if temperature:
        raise UnmaskError(
            f"decoder {decoder.name(chosen)!r} has no temperature: leave it out, or name a decoder that has one"
        )
    return chosen


def _not_a_decoder(value: object) -> str:
    kind, missing = type(value).__name__, [name for name in ("choice", "resolved", "rows") if not hasattr(value, name)]
    if callable(value) and not isinstance(value, type) and missing:
        return f"{kind} lacks {', '.join(missing)}: a decoder has these and is called with rows"
    return f"a decoder is a spec such as 'ots(beams=4)' or an object, not {kind}"
