"""How prompts are decoded, as one value: the API, grids, jobs and records hold it whole. Where models run, as one value: the API, grids and jobs hold it whole. Work without a bound is refused before it starts, with the cost it would have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args

import torch

import unmask.decoders  # noqa: F401  registers them
from unmask.core import Adapter, Canvas, Decoder, Denoiser, decoder
from unmask.core.decoder import resolve
from unmask.errors import UnmaskError, nearest
from unmask.models import Model, load
from unmask.models.devices import choose_device, choose_dtype, format_bytes, named_device, stored_dtype
from unmask.models.load import registered
from unmask.models.network.kv_cache import cached, make_cache, usual_cache
from unmask.models.wrappers import EarlyEnd, Guided, Suppressed, after_stop

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
    early_end: bool = False  # compute nothing after an answer's end-of-text; approximate (docs/speed.md)
    cache: str | None = None  # KV cache: none, exact, or approximate: prefix, dual, dual(refresh=4) (docs/speed.md)
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
        return bool(self.stop) and self.decoder.single_path and self.decoder.commits_only

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
        chosen = resolve(self.decoder, model.denoiser.block_size, masks)
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
    if callable(value) and not isinstance(value, type):
        return f"{type(value).__name__} is not a decoder: derive it from unmask.core.Decoder"
    return f"a decoder is a spec such as 'ots(beams=4)' or an object, not {type(value).__name__}"


Precision = Literal["highest", "high"]


# The comments beside the fields are also the help of the command line's options.
@dataclass(frozen=True)
class Placement:
    """Where a model runs."""

    device: str | None = None  # where the model runs: cpu or cuda; by default a GPU where there is one
    dtype: str | None = None  # of the weights: float32, bfloat16, …; by default the model's own
    precision: str = "highest"  # of float32 products: highest, or high for TF32 on a GPU
    compiled: bool = False  # fuse the operations of each layer; needs a GPU, and time to compile
    batch: int | None = None  # problems decoded together; by default as many as pay
    memory: float | None = None  # gigabytes that may be in use; by default most of what is free

    def __post_init__(self) -> None:
        if self.device is not None:
            named_device(self.device)
        if self.precision not in (known := get_args(Precision)):
            raise UnmaskError(f"precision cannot be {self.precision!r}: {nearest(str(self.precision), known)}")
        if self.batch is not None and self.batch < 1:
            raise UnmaskError(f"batch={self.batch} does not work: choose 1 or more")
        if self.memory is not None and not 0 < self.memory < math.inf:
            raise UnmaskError(f"memory={self.memory} does not work: give gigabytes above 0")

    @property
    def chosen_device(self) -> str:
        if self.device is not None:
            return self.device
        return "cuda" if torch.cuda.is_available() else "cpu"

    @property
    def budget(self) -> int | None:
        """Of memory, in bytes."""
        return None if self.memory is None else int(self.memory * 10**9)

    def load(self, name: str | Path, revision: str | None = None) -> Model:
        if not isinstance(name, str | Path):
            raise UnmaskError(f"a model is a name, a folder or a hub id, not {type(name).__name__}")
        if not str(name):
            raise UnmaskError("the model's name is empty: `unmask list models` shows the known ones")
        return load(name, self.chosen_device, self.dtype, revision=revision, compiled=self.compiled)

    def resolved(self, models: Iterable[str], here: bool = True) -> Placement:
        """With device and dtype written out; `here` tells whether this machine's devices can be asked."""
        device = choose_device(self.chosen_device) if here else torch.device(self.chosen_device)
        dtype = self.dtype or ("float32" if all(map(registered, models)) else None)
        number = choose_dtype(dtype, device) if here or dtype is None else stored_dtype(dtype)
        return replace(self, device=device.type, dtype=str(number).removeprefix("torch."))

    def spec(self) -> dict[str, Any]:
        """What belongs to a run: batch and memory do not change its results."""
        return {name: value for name, value in asdict(self).items() if name not in ("batch", "memory")}


MAX_FORWARD_PASSES = 1_000_000  # per problem, unless the user allows more
POSITION_BYTES = 64  # of a row that is kept: its tokens, scores and noise, in the copies that a step makes


def check_max_forward_passes(most: int | None) -> int:
    if most is None:
        return MAX_FORWARD_PASSES
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise UnmaskError(f"max_forward_passes={most!r} does not work: choose 1 or more")
    return most


def check_cost(decoder: Decoder, masks: int, most: int, times: int = 1, positions: int = 0, advice: str = "") -> None:
    """Refuse what may ask more than `most` rows of the network; `positions` are those of prompt and answer."""
    rows = decoder.max_forward_passes(masks) * times
    if rows <= most:
        return
    memory = rows // max(masks, 1) * max(masks, positions) * POSITION_BYTES
    advice = advice or f"choose less, or allow it with max_forward_passes (--max-forward-passes {rows})"
    raise UnmaskError(f"{spec(decoder)} needs about {rows:,} rows, {format_bytes(memory)}: {advice}")
